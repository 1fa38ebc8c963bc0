import { constants, existsSync, readFileSync, writeFileSync } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { DataError } from "@cria/core";

import { guardRunWrite } from "./run-folder.js";

/**
 * Keeps two processes from training into one run folder. The lock is next to the folder, which may be moved
 * meanwhile, and ends with the process that holds it.
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
      // For users, and for the error of a second process.
      await guardRunWrite(file, async () => writeFileSync(file, `process ${process.pid} on ${hostname()}`));
    } catch (error) {
      release();
      throw error;
    }
    return new RunLock(release);
  }

  /**
   * True if a process of this machine holds the lock. Only reads it, so that a training that wants the lock at this
   * moment gets it.
   */
  static isHeld(folder: string): boolean {
    const [, process = "", host] = /^process (\d+) on (.*)$/.exec(readHolder(`${folder}.run.lock`)) ?? [];
    return host === hostname() && holdsLocks(Number(process));
  }

  /** @throws DataError when another process holds it now. */
  static async check(folder: string): Promise<void> {
    if (existsSync(`${folder}.run.lock`)) (await RunLock.acquire(folder)).release();
  }
}

/** A killed process leaves its lock file behind, and another process may have its id by now. */
function holdsLocks(id: number): boolean {
  if (!isAlive(id)) return false;
  try {
    return readFileSync("/proc/locks", "utf8")
      .split("\n")
      .some((line) => line.trim().split(/\s+/).includes(String(id)));
  } catch {
    // This file exists only on Linux.
    return true;
  }
}

/** True if a process with this id runs, whoever owns it. */
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
