import { rm } from "node:fs/promises";
import { CriaError } from "@cria/core";
import type { RunFolder } from "./run-folder.js";

/** End of a run, in `end.json`. Missing while the run is in progress, or if its process was killed. */
export interface RunEnd {
  status: "ended" | "failed" | "interrupted";
  /** The error that ended it; null unless it failed. */
  error: string | null;
  /** ISO 8601. */
  at: string;
}

/** Does a run's work, and records in its folder how it ended. @throws the errors of the work */
export async function recordEnd<T>(
  folder: RunFolder,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  // A run that continues has not ended.
  await rm(folder.file("end.json"), { force: true });
  const write = (status: RunEnd["status"], error: string | null) => {
    const end: RunEnd = { status, error, at: new Date().toISOString() };
    return folder.writeJson("end.json", end);
  };
  let result: T;
  try {
    result = await work();
  } catch (error) {
    // The abort's reason tells an error elsewhere from the user's interruption.
    const failure = !signal?.aborted ? error : signal.reason instanceof CriaError ? signal.reason : null;
    const text = failure instanceof Error ? failure.message : String(failure);
    // A full disk is reported by the run's own error.
    await (failure === null ? write("interrupted", null) : write("failed", text)).catch(() => undefined);
    throw error;
  }
  await write("ended", null);
  return result;
}
