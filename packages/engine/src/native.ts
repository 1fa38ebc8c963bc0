import { EngineError } from "@cria/core";
import { loadAddon } from "@cria/native";
import type { NativeAddon } from "./native-types.js";

let addon: NativeAddon | undefined;

/** The native addon, loaded once. Throws EngineError when it is not built or its libraries are missing. */
export function getAddon(): NativeAddon {
  if (!addon) {
    try {
      addon = loadAddon() as NativeAddon;
    } catch (cause) {
      throw new EngineError("cannot be loaded", {
        code: "engine/addon-missing",
        subject: "native addon",
        expected: "the compiled addon and its llama.cpp libraries",
        received: (cause as Error).message,
        remedy: "run `npm run bootstrap` in the repository, or reinstall @cria/engine with a C++17 compiler and CMake",
        cause,
      });
    }
  }
  return addon;
}

/** Turns an error of the addon into an EngineError; anything else passes through. */
export function wrapNativeError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof EngineError) return error;
  const native = error as Error & {
    code?: string;
    subject?: string;
    expected?: string;
    received?: string;
    remedy?: string;
  };
  if (typeof native.code !== "string") return error;
  return new EngineError(native.message, {
    code: `engine/${native.code}`,
    subject: native.subject || "engine",
    expected: native.expected,
    received: native.received,
    remedy: native.remedy,
    cause: error,
  });
}

/** Awaits (or calls) a native function and wraps its errors. */
export async function callNative<T>(call: () => Promise<T> | T): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw wrapNativeError(error);
  }
}

export function callNativeSync<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw wrapNativeError(error);
  }
}
