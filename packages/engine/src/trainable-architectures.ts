import { callNative, getAddon } from "./native.js";

/**
 * Architectures that can be trained, as GGUF files name them.
 * @throws EngineError without the addon.
 */
export function listTrainableArchitectures(): string[] {
  return getAddon().trainableArchitectures();
}

/**
 * Checks that an adapter can be trained on a file, of which only the header is read: architecture, its features, weights
 * and their types, and the context.
 * @param path a GGUF file.
 * @param contextSize tokens; default as in `loadModel`.
 * @throws EngineError, the one that `loadModel` with `trainable: "lora"` would throw on a CPU.
 */
export async function checkTrainable(path: string, contextSize = 0): Promise<void> {
  await callNative(() => getAddon().checkTrainable(path, contextSize));
}
