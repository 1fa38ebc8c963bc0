// The published model written in another type, below the ignored folder .cache; made once.
import { existsSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { exportModel } from "../packages/engine/src/index.ts";
import { realModel } from "./real-model.mjs";

/** Files that checks of the published model make. */
export const realFolder = join(realModel.folder, "..", "real-model");

/** The path of the model in a type, such as Q8_0. */
export async function getRealFile(type) {
  if (type === "Q4_1") return realModel.path;
  mkdirSync(realFolder, { recursive: true });
  const path = join(realFolder, `${type}.gguf`);
  if (existsSync(path)) return path;
  // Several processes may make it at once.
  const own = `${path}.${process.pid}.tmp`;
  await exportModel({ base: realModel.path, output: own, quantize: type });
  renameSync(own, path);
  return path;
}
