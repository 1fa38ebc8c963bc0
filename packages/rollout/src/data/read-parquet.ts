import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { Worker } from "node:worker_threads";

/** Deadline for reading a file: one minute plus one second per megabyte. */
const chooseDeadlineMs = (bytes: number) => 60_000 + bytes / 1000;

/**
 * Reads the rows of a Parquet file; bytes become Uint8Array, 64-bit integers BigInt. A worker thread reads the file
 * and is terminated at the deadline.
 * @throws Error when the file is missing or damaged.
 */
export async function readParquet(path: string, deadlineMs?: number): Promise<Record<string, unknown>[]> {
  const bytes = new Uint8Array(await readFile(path));
  const ms = deadlineMs ?? chooseDeadlineMs(bytes.length);
  const extension = import.meta.url.endsWith(".ts") ? "mjs" : "js";
  const worker = new Worker(new URL(`./parquet-worker.${extension}`, import.meta.url), {
    workerData: bytes,
    transferList: [bytes.buffer],
    execArgv: [],
  });
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), ms);
  try {
    const [answer] = await once(worker, "message", { signal: late.signal });
    const { rows, error } = answer as { rows?: Record<string, unknown>[]; error?: string };
    if (rows) return rows;
    throw new Error(error);
  } catch (error) {
    if (!late.signal.aborted) throw error;
    throw new Error(`it was not read to its end in ${ms / 1000} s`);
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
