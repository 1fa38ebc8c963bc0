import { LlamaModel } from "../llama-model.js";
import { type LoadModelOptions, loadNative } from "../load-native.js";
import type { NativeLoadOptions } from "../native-types.js";

/**
 * Loads a model that trains on the CPU in the way it would on another device, to check a GPU's graphs and kernels
 * without one.
 */
export async function loadEmulated(
  options: LoadModelOptions,
  emulatedDevice: NonNullable<NativeLoadOptions["emulatedDevice"]>,
): Promise<LlamaModel> {
  return new LlamaModel(await loadNative(options, { emulatedDevice }));
}
