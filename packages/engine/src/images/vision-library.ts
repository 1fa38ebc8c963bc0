import { EngineError } from "@cria/core";
import { findVisionLibrary, nameVisionPackage } from "@cria/native";
import { callNativeSync, getAddon } from "../native.js";

/** Support for image input on this machine. */
export interface VisionSupport {
  /** Path of libcria-vision.so; null when it is missing. */
  library: string | null;
  /** The release of llama.cpp that it was compiled for; null when it cannot be loaded. */
  release: string | null;
  /** The reason it cannot be used, and a remedy; null when it can. */
  problem: string | null;
  remedy: string | null;
}

const remedy = () => `npm install ${nameVisionPackage()}, or build it (C++17 compiler, git, node-llama-cpp)`;

/** Looks for libcria-vision.so, and loads it if it exists. @throws EngineError when the addon cannot be loaded. */
export function inspectVision(): VisionSupport {
  const library = findVisionLibrary();
  if (library === null) {
    return { library, release: null, problem: `${nameVisionPackage()} is not installed`, remedy: remedy() };
  }
  const addon = getAddon();
  try {
    return { library, release: addon.loadVision(library), problem: null, remedy: null };
  } catch (error) {
    const { message, expected, received } = error as EngineError;
    const parts = [message, expected && `expected ${expected}`, received].filter(Boolean);
    return { library, release: null, problem: `${library} ${parts.join(", ")}`, remedy: remedy() };
  }
}

/**
 * Loads the library and returns its path. @throws EngineError "engine/vision-missing", or with the reason why it cannot
 * be loaded.
 */
export function loadVisionLibrary(): string {
  const library = findVisionLibrary();
  if (library === null) {
    throw new EngineError("cannot be used", {
      code: "engine/vision-missing",
      subject: "images",
      expected: "the library that opens projectors and pictures, libcria-vision.so",
      received: `${nameVisionPackage()} is not installed`,
      remedy: remedy(),
    });
  }
  callNativeSync(() => getAddon().loadVision(library));
  return library;
}
