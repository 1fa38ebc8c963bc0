import { stat } from "node:fs/promises";
import { EngineError, hashFile, type ModelInfo, type ProjectorInfo } from "@cria/core";
import { callNative } from "../native.js";
import type { NativeModel, NativeProjector } from "../native-types.js";
import { checkProjector } from "./check-projector.js";
import { loadVisionLibrary } from "./vision-library.js";

export interface OpenProjectorOptions {
  /** A GGUF file. */
  path: string;
  /** Of the encoder; vectors do not depend on it. Default: the model's, and 1 for a file below 16 MiB. */
  threads?: number;
  /** Tokens of an image at least and at most, where the projector takes images of any size. Default: as the file says. */
  minTokens?: number;
  maxTokens?: number;
  /** Of the check of a file that is new here, in milliseconds. Default ten minutes. */
  timeLimit?: number;
}

/** In bytes. One as small encodes an image in less time than threads need to wait for each other, which on busy cores is long. */
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
      cause,
    });
  }
}
