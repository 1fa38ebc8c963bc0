import { callNative, getAddon } from "./native.js";
import type { GgufFile } from "./native-types.js";

/**
 * Writes a GGUF file: temporary name, sync, rename. Tensor data is given as floats and quantized to each tensor's type.
 * @throws EngineError when a name, shape or type is wrong, or the file cannot be written (nothing is left behind).
 */
export async function writeGguf(path: string, file: GgufFile): Promise<void> {
  await callNative(() => getAddon().writeGguf(path, file));
}
