import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { ConfigError, DataError } from "@cria/core";
import { RunLock } from "@cria/trainer/internal";
import { findRuns } from "../runs/find-runs.js";
import { readRun } from "../runs/run-reader.js";
import { checkRunFolder } from "./check-run-folder.js";

/**
 * Takes a run folder away for good, with all that it trained.
 * @param confirm asks whoever types; null: nobody can be asked.
 * @returns whether it was removed: it stays where nobody confirms.
 * @throws DataError for a run that is running, a folder that is no run's, or one with other runs in it; ConfigError where nobody can be
 * asked.
 */
export async function removeRun(path: string, confirm: (() => Promise<boolean>) | null): Promise<boolean> {
  await checkRunFolder(path);
  const others = (await findRuns([path])).filter((run) => resolve(run.path) !== resolve(path));
  if (others.length > 0) throw refuse(path, "holds other runs", `${others.length} below it`, "remove these first");
  if ((await readRun(path)).status === "running")
    throw refuse(path, "is running", "a process that trains into it", "end it first: Ctrl-C saves what is done");
  if (confirm === null) {
    throw new ConfigError("needs a confirmation", {
      code: "config/not-confirmed",
      subject: `cria runs remove ${path}`,
      expected: "--yes, or a terminal to ask in",
    });
  }
  if (!(await confirm())) return false;
  // Between the look and the answer somebody may have begun to train.
  const lock = await RunLock.acquire(resolve(path));
  try {
    await rm(path, { recursive: true });
    await rm(`${resolve(path)}.run.lock`, { force: true });
  } finally {
    lock.release();
  }
  return true;
}

/** Asks in the terminal; anything but yes is no. */
export async function askToRemove(path: string): Promise<boolean> {
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await reader.question(`remove ${path}, with its weights and checkpoints? (y/N) `)).trim());
  } finally {
    reader.close();
  }
}

function refuse(subject: string, summary: string, received: string, remedy: string): DataError {
  const expected = "the folder of one run that is over";
  return new DataError(summary, { code: "data/run-in-use", subject, expected, received, remedy });
}
