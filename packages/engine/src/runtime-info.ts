import { callNativeSync, getAddon } from "./native.js";
import type { NativeRuntimeInfo } from "./native-types.js";

/** Releases and devices of the loaded llama.cpp. Throws EngineError when addon and libraries do not match. */
export function getRuntimeInfo(): NativeRuntimeInfo {
  return callNativeSync(() => getAddon().runtimeInfo());
}
