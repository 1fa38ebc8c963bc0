import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { cached } from "../cache.js";
import { getProgram } from "../llama-cpp.js";
import { writeRandomModel } from "./random-weights.js";
import type { ModelName } from "./shapes.js";

export { type ModelName, type ModelShape, shapes } from "./shapes.js";

export type ModelType = "F16" | "Q8_0" | "Q4_K_M";

/** llama.cpp's numbers of file types. */
const fileTypes: Record<Exclude<ModelType, "F16">, number> = { Q8_0: 7, Q4_K_M: 15 };

/**
 * Path of a GGUF with random weights of a real model's shape and a real vocabulary; made the first time, which takes
 * seconds to a minute, and then kept (up to 1 GB each). Quantized types are llama.cpp's own mixes: Q4_K_M holds Q6_K too,
 * and Q5_0 and Q8_0 where rows are no multiple of 256.
 */
export async function getModelFile(
  name: ModelName,
  type: ModelType,
  log: (text: string) => void = console.error,
): Promise<string> {
  const file = (of: ModelType) => join("models", `${name}-${of}.gguf`);
  const tell = (path: string) => log(`made ${name} ${type}: ${(statSync(path).size / 1e6).toFixed(0)} MB`);
  if (type === "F16")
    return cached(file(type), async (temporary) => {
      await writeRandomModel(temporary, name);
      tell(temporary);
    });
  return cached(file(type), async (temporary) => {
    const source = await getModelFile(name, "F16", log);
    const quantize = await getProgram({ name: "quantize", sources: [join(import.meta.dirname, "quantize.cc")] }, log);
    execFileSync(quantize, [source, temporary, String(fileTypes[type])], { stdio: ["ignore", "ignore", "inherit"] });
    tell(temporary);
  });
}
