import { getAddon } from "./native.js";

/**
 * Architectures that can be trained, as GGUF files name them.
 * @throws EngineError without the addon.
 */
export function listTrainableArchitectures(): string[] {
  return getAddon().trainableArchitectures();
}
