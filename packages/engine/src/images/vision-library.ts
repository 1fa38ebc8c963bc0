import { EngineError } from "@cria/core";
import { findVisionLibrary, nameVisionPackage } from "@cria/native";
import { callNativeSync, getAddon } from "../native.js";

/** Whether models can see images here. */
export interface VisionSupport {
  /** Of libcria-vision.so; null when it is missing. */
  library: string | null;
  /** The release of llama.cpp that it was compiled for; null when it cannot be loaded. */
  release: string | null;
  /** Why it cannot be used, and what to do about it; null when it can. */
  problem: string | null;
  remedy: string | null;
}

const remedy = () => `npm install ${nameVisionPackage()}, or build it (C++17 compiler, git, node-llama-cpp)`;

/** Looks for libcria-vision.so, and loads it where it is. @throws EngineError when the addon cannot be loaded. */
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

/** The library's path, loaded. @throws EngineError "engine/vision-missing", or why it cannot be loaded. */
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
