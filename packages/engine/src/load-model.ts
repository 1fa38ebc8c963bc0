import { openImages } from "./images/open-images.js";
import { LlamaModel } from "./llama-model.js";
import { type LoadModelOptions, loadNative } from "./load-native.js";

/**
 * Loads a GGUF model for generation and optionally training. One process may hold several.
 * @throws EngineError when a file is missing, damaged or not trainable as requested, or memory does not suffice;
 *   HubError when its address cannot be resolved; ConfigError for an unknown option.
 */
export async function loadModel(options: LoadModelOptions): Promise<LlamaModel> {
  const native = await loadNative(options);
  try {
    return new LlamaModel(native, await openImages(native, options, native.info().contextSize));
  } catch (error) {
    await native.dispose();
    throw error;
  }
}
