import { statSync } from "node:fs";
import { join } from "node:path";
import { quantizeModel } from "@cria/engine";
import { cached } from "../cache.js";
import { writeRandomModel } from "./random-weights.js";
import type { ModelName } from "./shapes.js";

export { type ModelName, type ModelShape, shapes } from "./shapes.js";

export type ModelType = "F16" | "BF16" | "Q8_0" | "Q6_K" | "Q5_K_M" | "Q4_K_M" | "Q4_1" | "Q4_0";

/**
 * Path of a GGUF with random weights of a real model's shape and a real vocabulary; made the first time, which takes
 * seconds to a minute, and then kept (up to 1 GB each). Quantized types are llama.cpp's own mixes: Q4_K_M holds Q6_K
 * too, and Q5_0 and Q8_0 where rows are no multiple of 256.
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
    await quantizeModel({ input: source, output: temporary, type });
    tell(temporary);
  });
}
