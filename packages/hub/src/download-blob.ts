import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { HubError } from "@cria/core";
import { Checksum, type HubFile } from "./hub-cache.js";
import type { HubSettings } from "./hub-settings.js";
import { lockDownload } from "./lock-download.js";

export interface DownloadBlobOptions {
  repo: { type: "model" | "dataset"; name: string };
  commit: string;
  settings: HubSettings;
  signal?: AbortSignal;
  /** Called with the number of bytes downloaded so far, including those of an earlier attempt. */
  onBytes: (done: number) => void;
}

/**
 * Consecutive attempts without progress, and the pause before the second one, which doubles for each further attempt.
 */
const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 250;
const PROGRESS_MS = 100;

/**
 * Downloads a file's content to `target`, complete and checked, or leaves the partial content in `<target>.incomplete`.
 * The next attempt continues there: in this process after a broken connection, or in a later process.
 * @throws HubError when the content differs from the hub's listing; otherwise errors of the hub, the network or the
 * file system.
 */
export async function downloadBlob(file: HubFile, target: string, options: DownloadBlobOptions): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  const release = await lockDownload(`${target}.lock`, options.signal);
  try {
    // Another process may have finished it while this one waited.
    if (await isThere(target)) return;
    const part = `${target}.incomplete`;
    const { checksum, length } = await readPart(part, file);
    const found = await append(part, length, checksum, file, options);
    if (found !== file.oid) {
      await rm(part, { force: true });
      throw new HubError("differs from the hub's listing", {
        code: "hub/checksum",
        subject: `${options.repo.name}/${file.path}`,
        expected: `${file.algorithm === "git" ? "Git's SHA-1" : "SHA-256"} ${file.oid}`,
        received: found,
        remedy: "try again: the damaged copy was removed",
      });
    }
    await rename(part, target);
  } finally {
    await release();
  }
}

/** The partial content of an earlier attempt; discards it if it is longer than the file. */
async function readPart(part: string, file: HubFile): Promise<{ checksum: Checksum; length: number }> {
  const checksum = new Checksum(file);
  const { size } = await stat(part).catch(() => ({ size: 0 }));
  if (size === 0) return { checksum, length: 0 };
  if (size > file.size) {
    await rm(part);
    return { checksum, length: 0 };
  }
  for await (const bytes of createReadStream(part)) checksum.update(bytes as Buffer);
  return { checksum, length: size };
}

/** Downloads from `length` on. @returns the checksum of the whole content. */
async function append(
  part: string,
  length: number,
  checksum: Checksum,
  file: HubFile,
  options: DownloadBlobOptions,
): Promise<string> {
  const { signal, onBytes } = options;
  const output = await open(part, "a");
  let done = length;
  let told = 0;
  try {
    for (let failures = 0; done < file.size; ) {
      const start = done;
      try {
        for await (const bytes of await openStream(file, done, options)) {
          signal?.throwIfAborted();
          const wanted = bytes.subarray(0, file.size - done);
          await writeAll(output, wanted);
          checksum.update(wanted);
          done += wanted.length;
          if (performance.now() - told < PROGRESS_MS) continue;
          told = performance.now();
          onBytes(done);
        }
        if (done < file.size && done === start) throw new Error("the hub sent nothing");
      } catch (error) {
        if (done > start) failures = 0;
        if (signal?.aborted || !isWorthAnotherTry(error) || ++failures >= ATTEMPTS) throw error;
        await pause(FIRST_PAUSE_MS * 2 ** (failures - 1), signal);
      }
    }
    onBytes(done);
    await output.sync();
  } finally {
    await output.close();
  }
  return checksum.finish();
}

async function openStream(
  file: HubFile,
  start: number,
  options: DownloadBlobOptions,
): Promise<AsyncIterable<Uint8Array>> {
  const { downloadFile } = await import("@huggingface/hub");
  const { repo, commit, settings, signal } = options;
  const blob = await downloadFile({
    repo,
    path: file.path,
    revision: commit,
    hubUrl: settings.endpoint,
    accessToken: settings.token,
    fetch: makeFetch(signal),
    // Plain HTTP with ranges: the other protocol reassembles a file from chunks, which a resumed download could not
    // continue.
    xet: false,
  });
  if (!blob) throw Object.assign(new Error(`${file.path} is not there any more`), { statusCode: 404 });
  return blob.slice(start, file.size).stream() as unknown as AsyncIterable<Uint8Array>;
}

async function writeAll(output: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let offset = 0; offset < bytes.length; )
    offset += (await output.write(bytes, offset, bytes.length - offset)).bytesWritten;
}

/** A fetch with this signal, for clients that take none. */
export function makeFetch(signal: AbortSignal | undefined): typeof fetch {
  return (input, init) => fetch(input, signal ? { ...init, signal } : init);
}

/** True for broken connections and failures of the hub, but not for a refusal or a full disk. */
function isWorthAnotherTry(error: unknown): boolean {
  const { statusCode, syscall } = (error ?? {}) as { statusCode?: number; syscall?: string };
  if (statusCode !== undefined) return statusCode === 429 || statusCode >= 500;
  return syscall !== "write" && syscall !== "fsync";
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
