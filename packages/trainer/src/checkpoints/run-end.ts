import { rm } from "node:fs/promises";
import { CriaError } from "@cria/core";
import type { RunFolder } from "./run-folder.js";

/** How a run ended. `end.json`; there is none while it is under way, or when its process was killed. */
export interface RunEnd {
  status: "ended" | "failed" | "interrupted";
  /** What ended it; null unless it failed. */
  error: string | null;
  /** ISO 8601. */
  at: string;
}

/** Does a run's work, and notes in its folder how it ended. @throws what the work throws */
export async function recordEnd<T>(
  folder: RunFolder,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  // A run that goes on has not ended.
  await rm(folder.file("end.json"), { force: true });
  const write = (status: RunEnd["status"], error: string | null) => {
    const end: RunEnd = { status, error, at: new Date().toISOString() };
    return folder.writeJson("end.json", end);
  };
  let result: T;
  try {
    result = await work();
  } catch (error) {
    // Interrupted because something failed elsewhere, or by somebody's wish.
    const failure = !signal?.aborted ? error : signal.reason instanceof CriaError ? signal.reason : null;
    const text = failure instanceof Error ? failure.message : String(failure);
    // Where the disk is full the run's own error says so.
    await (failure === null ? write("interrupted", null) : write("failed", text)).catch(() => undefined);
    throw error;
  }
  await write("ended", null);
  return result;
}
