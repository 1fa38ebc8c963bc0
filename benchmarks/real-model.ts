import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { exportModel } from "@cria/engine";
import { cached } from "./cache.js";

export interface RealModel {
  realModel: { path: string; file: string };
  realPython: string;
  /** Why there is none. */
  missingModel: string | null;
}

/**
 * The published model and the Python that scripts/fetch-real-model.mjs fetches: by its path, since no benchmark imports
 * scripts.
 */
export const findRealModel = (): Promise<RealModel> =>
  import(pathToFileURL(join(import.meta.dirname, "..", "scripts", "real-model.mjs")).href);

/** The path of the published model, written in another type. */
export function writeRealModel({ path, file }: RealModel["realModel"], type: "F32" | "Q8_0"): Promise<string> {
  const name = `${file.replace(".gguf", "")}.as.${type}.gguf`;
  return cached(name, (output) => exportModel({ base: path, output, quantize: type }).then(() => undefined));
}
