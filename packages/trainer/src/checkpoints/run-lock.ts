import { constants, existsSync, readFileSync, writeFileSync } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { DataError } from "@cria/core";

import { guardRunWrite } from "./run-folder.js";

/**
 * Keeps two processes from training into one run folder. The lock lies beside the folder, which may be moved while it is
 * held, and ends with the process that holds it.
 */
export class RunLock {
  private constructor(readonly release: () => void) {}

  /** @throws DataError when another process holds it, or the folder cannot be written. */
  static async acquire(folder: string): Promise<RunLock> {
    const file = `${folder}.run.lock`;
    const { lockFile } = await import("@cria/engine/internal");
    const release = await guardRunWrite(file, async () => {
      await mkdir(dirname(file), { recursive: true });
      await access(dirname(file), constants.W_OK);
      return lockFile(file);
    });
    if (!release) throw makeTaken(folder, file);
    try {
      // For people, and for the error of a second process.
      await guardRunWrite(file, async () => writeFileSync(file, `process ${process.pid} on ${hostname()}`));
    } catch (error) {
      release();
      throw error;
    }
    return new RunLock(release);
  }

  /** Whether a process of this machine holds it. It only reads: a training that wants the lock just then gets it. */
  static isHeld(folder: string): boolean {
    const [, process = "", host] = /^process (\d+) on (.*)$/.exec(readHolder(`${folder}.run.lock`)) ?? [];
    return host === hostname() && holdsLocks(Number(process));
  }

  /** @throws DataError when another process holds it now. */
  static async check(folder: string): Promise<void> {
    if (existsSync(`${folder}.run.lock`)) (await RunLock.acquire(folder)).release();
  }
}

/** A killed process leaves the file of its lock, and another process may have its number by now. */
function holdsLocks(id: number): boolean {
  if (!isAlive(id)) return false;
  try {
    return readFileSync("/proc/locks", "utf8")
      .split("\n")
      .some((line) => line.trim().split(/\s+/).includes(String(id)));
  } catch {
    // Linux alone has this file.
    return true;
  }
}

/** Whether a process of this number runs, whoever's it is. */
export function isAlive(id: number): boolean {
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function makeTaken(folder: string, file: string): DataError {
  return new DataError("is in use by another run", {
    code: "data/run-in-use",
    subject: folder,
    expected: "a run folder of its own",
    received: `${readHolder(file)} trains into it (${file})`,
    remedy: "wait for it, or set another trainer.experiment_name",
  });
}

function readHolder(file: string): string {
  try {
    return readFileSync(file, "utf8") || "another process";
  } catch {
    return "another process";
  }
}
