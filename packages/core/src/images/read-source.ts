import { open, readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { DataError } from "../errors/data-error.js";
import type { ImageSource, LoadedImage } from "./image-source.js";

/** Allowed sources of images, and the limit of their files. */
export interface ReadSourceOptions {
  /** Owner of the image, for errors: a row, a tool. */
  subject?: string;
  /** Most bytes of a file. Default 20 MiB. */
  maxBytes?: number;
  /** Base folder of relative paths. Absent: paths are refused. */
  folder?: string;
  /** Fetches addresses. Absent: addresses are refused. */
  fetch?: typeof fetch;
}

const defaultMaxBytes = 20 * 1024 * 1024;

/**
 * The bytes of an image's file.
 * @throws DataError "data/bad-image" for a file that cannot be read or is too large; "data/image-refused" for one that
 * these options do not allow.
 */
export async function readSource(
  source: Exclude<ImageSource, LoadedImage>,
  { subject = "image", maxBytes = defaultMaxBytes, folder, fetch: fetchAddress }: ReadSourceOptions,
): Promise<Uint8Array> {
  const bytes = await readAll(source, { subject, maxBytes, folder, fetch: fetchAddress });
  checkBytes(bytes.length, subject, maxBytes);
  return bytes;
}

/** The first bytes of a file, nearly always enough for its header. */
export async function readHead(path: string, folder: string): Promise<Uint8Array> {
  const file = await open(resolve(folder, path));
  try {
    const { buffer, bytesRead } = await file.read(new Uint8Array(headBytes), 0, headBytes, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

const headBytes = 64 * 1024;

type Reading = ReadSourceOptions & { subject: string; maxBytes: number };

async function readAll(
  source: Exclude<ImageSource, LoadedImage>,
  { subject, maxBytes, folder, fetch: fetchAddress }: Reading,
): Promise<Uint8Array> {
  if ("bytes" in source) return source.bytes;
  if ("data" in source) return decodeData(source.data, subject, maxBytes);
  if ("path" in source) {
    if (folder === undefined) return refuseSource(subject, `the path ${source.path}`, "give the file's bytes");
    return readImageFile(resolve(folder, source.path), subject, maxBytes);
  }
  if ("url" in source) {
    if (source.url.startsWith("data:")) return decodeData(source.url, subject, maxBytes);
    if (!fetchAddress) {
      return refuseSource(
        subject,
        `the address ${source.url.slice(0, 200)}`,
        "switch fetching on, or give the file itself",
      );
    }
    return download(source.url, subject, maxBytes, fetchAddress);
  }
  return refuseSource(subject, `only the hash ${source.hash}`, "open the dump that contains its file");
}

function refuseSource(subject: string, received: string, remedy: string): never {
  throw new DataError("is not in memory, and may not be fetched", {
    code: "data/image-refused",
    subject,
    expected: "an image's bytes, or a data address",
    received,
    remedy,
  });
}

function checkBytes(length: number, subject: string, maxBytes: number): void {
  if (length <= maxBytes) return;
  throw new DataError("is too large", {
    code: "data/bad-image",
    subject,
    expected: `at most ${maxBytes} bytes`,
    received: `${length} bytes`,
    remedy: "scale it down, or raise the limit",
  });
}

function decodeData(data: string, subject: string, maxBytes: number): Uint8Array {
  const base64 = data.startsWith("data:") ? data.slice(data.indexOf(",") + 1) : data;
  checkBytes(Math.floor((base64.length * 3) / 4), subject, maxBytes + 3);
  return Uint8Array.from(Buffer.from(base64, "base64"));
}

async function readImageFile(path: string, subject: string, maxBytes: number): Promise<Uint8Array> {
  try {
    checkBytes((await stat(path)).size, subject, maxBytes);
    return Uint8Array.from(await readFile(path));
  } catch (cause) {
    if (cause instanceof DataError) throw cause;
    throw new DataError("cannot be read", {
      code: "data/bad-image",
      subject,
      expected: `an image at ${path}`,
      received: (cause as Error).message,
      remedy: "check the path and its permissions",
      cause,
    });
  }
}

async function download(
  url: string,
  subject: string,
  maxBytes: number,
  fetchAddress: typeof fetch,
): Promise<Uint8Array> {
  const fail = (received: string, cause?: unknown): never => {
    throw new DataError("cannot be fetched", {
      code: "data/bad-image",
      subject,
      expected: `an image at ${url.slice(0, 200)}`,
      received,
      remedy: "check the address, or give the file itself",
      cause,
    });
  };
  try {
    const response = await fetchAddress(url);
    if (!response.ok || !response.body) return fail(`status ${response.status}`);
    const parts: Uint8Array[] = [];
    let length = 0;
    for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
      length += part.length;
      checkBytes(length, subject, maxBytes);
      parts.push(part);
    }
    return Uint8Array.from(Buffer.concat(parts));
  } catch (cause) {
    if (cause instanceof DataError) throw cause;
    return fail((cause as Error).message, cause);
  }
}
