import { stat } from "node:fs/promises";
import { EngineError, type ModelInfo, type ProjectorInfo } from "@cria/core";
import { hashFile } from "@cria/core/internal";
import { callNative } from "../native.js";
import type { NativeModel, NativeProjector } from "../native-types.js";
import { checkProjector } from "./check-projector.js";
import { loadVisionLibrary } from "./vision-library.js";

export interface OpenProjectorOptions {
  /** Path of a GGUF file. */
  path: string;
  /** Threads of the encoder; vectors do not depend on them. Default: the model's, and 1 for a file below 16 MiB. */
  threads?: number;
  /**
   * Minimum and maximum tokens of an image, for projectors that take images of any size. Default: the file's limits.
   */
  minTokens?: number;
  maxTokens?: number;
  /** Time limit for checking a file that is new on this machine, in milliseconds. Default ten minutes. */
  timeLimit?: number;
}

/**
 * In bytes. A smaller projector encodes an image in less time than threads need to synchronize, which takes long on
 * busy cores.
 */
const smallProjector = 16 * 1024 * 1024;

export interface OpenedProjector {
  native: NativeProjector;
  info: ProjectorInfo;
}

/**
 * Opens a projector for a model. A file that is new on this machine is tried in a child process first.
 * @throws EngineError "engine/vision-missing" without libcria-vision.so, "engine/bad-projector" for a file that cannot be used, or
 * not with this model.
 */
export async function openProjector(
  native: NativeModel,
  model: Pick<ModelInfo, "path" | "architecture" | "threads">,
  { path, threads, minTokens = 0, maxTokens = 0, timeLimit }: OpenProjectorOptions,
): Promise<OpenedProjector> {
  const library = loadVisionLibrary();
  const hash = await hashProjector(path);
  const isSmall = (await stat(path)).size < smallProjector;
  const projector = { library, path, threads: threads ?? (isSmall ? 1 : model.threads), minTokens, maxTokens };
  await checkProjector({ model, projector, hash, timeLimit });
  const opened = await callNative(() => native.openProjector(projector));
  return { native: opened, info: { path, type: opened.info().type, hash } };
}

async function hashProjector(path: string): Promise<string> {
  try {
    return await hashFile(path);
  } catch (cause) {
    throw new EngineError("cannot be read", {
      code: "engine/file-not-found",
      subject: path,
      expected: "a projector's file (llama.cpp's mmproj)",
      received: (cause as Error).message,
      remedy: "check the path and its permissions",
      cause,
    });
  }
}
