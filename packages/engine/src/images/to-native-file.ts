import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { EngineError } from "@cria/core";
import { isWebp, readWebpFile, type WebpFile } from "@cria/core/internal";
import { JobQueue } from "../job-queue.js";

/** Deadline for decoding a picture, ten times what a busy machine takes: 20 s, and 2 s for each million pixels. */
const chooseDeadlineMs = (pixels: number) => 20_000 + pixels / 500;
/**
 * Memory of the decoder. Real files need at most 13 bytes for each pixel, and less than 64 MiB for the tables of a
 * lossless file; a bomb could ask for a gigabyte of tables.
 */
const chooseMemory = (pixels: number, fileBytes: number) => 64 * 2 ** 20 + 16 * pixels + 2 * fileBytes;

/** One decoder at a time: each takes up to some hundred megabytes. */
const decoders = new JobQueue();

/**
 * The file as the native decoder reads it: unchanged, or for a WebP its pixels as a BMP, with their transparency and
 * not turned yet. A worker thread decodes them.
 * @throws EngineError "engine/bad-image" for a damaged WebP, or one of more pixels than the limit.
 */
export async function toNativeFile(file: Uint8Array, maxPixels: number): Promise<Uint8Array> {
  if (!isWebp(file)) return file;
  const stored = readHeader(file);
  const { width, height } = stored;
  if (width * height > maxPixels) {
    throw new EngineError("has too many pixels", {
      code: "engine/bad-image",
      subject: "image",
      expected: `at most ${maxPixels}`,
      received: `${width} x ${height}`,
      remedy: "scale it down, or raise the limit",
    });
  }
  return decoders.run(() => decode(file, stored));
}

function readHeader(file: Uint8Array): WebpFile {
  try {
    return readWebpFile(file);
  } catch (cause) {
    throw damaged((cause as Error).message, cause);
  }
}

async function decode(file: Uint8Array, { width, height, frame }: WebpFile): Promise<Uint8Array> {
  const bytes = frame?.file ?? file;
  const extension = import.meta.url.endsWith(".ts") ? "mjs" : "js";
  const worker = new Worker(new URL(`./webp-worker.${extension}`, import.meta.url), {
    workerData: {
      file: bytes,
      frame: frame ? { ...frame, file: undefined } : { x: 0, y: 0, width, height },
      width,
      height,
      mostBytes: chooseMemory(width * height, bytes.length),
    },
    execArgv: [],
  });
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), chooseDeadlineMs(width * height));
  try {
    const [answer] = await once(worker, "message", { signal: late.signal });
    const { picture, error } = answer as { picture?: Uint8Array; error?: string };
    if (picture) return picture;
    throw damaged(String(error));
  } catch (cause) {
    if (cause instanceof EngineError) throw cause;
    throw damaged(late.signal.aborted ? "it was not decoded in time" : (cause as Error).message, cause);
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}

function damaged(received: string, cause?: unknown): EngineError {
  return new EngineError("is damaged, or of a kind that is not read", {
    code: "engine/bad-image",
    subject: "image",
    expected: "a whole WebP file",
    received,
    cause,
  });
}
