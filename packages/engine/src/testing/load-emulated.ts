import { LlamaModel } from "../llama-model.js";
import { type LoadModelOptions, loadNative } from "../load-native.js";
import type { NativeLoadOptions } from "../native-types.js";

/**
 * Loads a model whose training runs as on a device that is not the CPU, though on the CPU: the graphs and kernels of a GPU
 * can be checked without one.
 */
export async function loadEmulated(
  options: LoadModelOptions,
  emulatedDevice: NonNullable<NativeLoadOptions["emulatedDevice"]>,
): Promise<LlamaModel> {
  return new LlamaModel(await loadNative(options, { emulatedDevice }));
}
