import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { ConfigError, DataError } from "@cria/core";
import { RunLock } from "@cria/trainer/internal";
import { findRuns } from "../runs/find-runs.js";
import { readRun } from "../runs/run-reader.js";
import { checkRunFolder } from "./check-run-folder.js";

/**
 * Removes a run folder for good, with all its weights.
 * @param confirm asks the user; null: there is no user to ask.
 * @returns true if it was removed; without a confirmation it stays.
 * @throws DataError for a run in progress, a folder that is no run's, or one with other runs in it; ConfigError when
 * there is no user to ask.
 */
export async function removeRun(path: string, confirm: (() => Promise<boolean>) | null): Promise<boolean> {
  await checkRunFolder(path);
  const others = (await findRuns([path])).filter((run) => resolve(run.path) !== resolve(path));
  if (others.length > 0) throw refuse(path, "holds other runs", `${others.length} below it`, "remove these first");
  if ((await readRun(path)).status === "running")
    throw refuse(path, "is running", "a process that trains into it", "stop it first: Ctrl-C saves finished work");
  if (confirm === null) {
    throw new ConfigError("needs a confirmation", {
      code: "config/not-confirmed",
      subject: `cria runs remove ${path}`,
      expected: "--yes, or a terminal to ask in",
      received: "neither",
      remedy: "add --yes",
    });
  }
  if (!(await confirm())) return false;
  // A training may have begun between the check and the answer.
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
  const expected = "the folder of one finished run";
  return new DataError(summary, { code: "data/run-in-use", subject, expected, received, remedy });
}
