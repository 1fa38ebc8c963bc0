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

/** Removes the end of a run that continues. */
export async function forgetEnd(folder: RunFolder): Promise<void> {
  await rm(folder.file("end.json"), { force: true });
}

/** Records how a run ended. @param failure what ended its work; left out: the work is done. */
export async function recordEnd(
  folder: RunFolder,
  signal: AbortSignal | undefined,
  failure?: { error: unknown },
): Promise<void> {
  const write = (status: RunEnd["status"], error: string | null) => {
    const end: RunEnd = { status, error, at: new Date().toISOString() };
    return folder.writeJson("end.json", end);
  };
  if (!failure) return write("ended", null);
  // The abort's reason tells an error elsewhere from the user's interruption.
  const error = !signal?.aborted ? failure.error : signal.reason instanceof CriaError ? signal.reason : null;
  const text = error instanceof Error ? error.message : String(error);
  // A full disk is reported by the run's own error.
  await (error === null ? write("interrupted", null) : write("failed", text)).catch(() => undefined);
}
