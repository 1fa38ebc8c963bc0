import { readFileSync } from "node:fs";
import { mkdir, open, readFile, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { DataError } from "@cria/core";
import { guardWrite } from "../train/run-folder.js";

interface Owner {
  pid: number;
  host: string;
  /** Tells a process from a later one of the same id; null where the system does not say. */
  started: string | null;
}

/** Keeps two processes from training into one run folder. The lock of a process that died is taken over. */
export class RunLock {
  private constructor(private readonly file: string) {}

  /** @throws DataError when a living process of this machine holds it, or the folder cannot be written. */
  static async acquire(folder: string): Promise<RunLock> {
    const file = join(folder, "run.lock");
    const owner: Owner = { pid: process.pid, host: hostname(), started: readStartTime(process.pid) };
    await guardWrite(folder, () => mkdir(folder, { recursive: true }));
    for (let attempt = 0; ; attempt++) {
      try {
        const handle = await open(file, "wx");
        await handle.writeFile(JSON.stringify(owner));
        await handle.close();
        return new RunLock(file);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST" || attempt > 5) {
          await guardWrite(file, () => Promise.reject(error));
        }
      }
      const holder = await readOwner(file);
      if (holder && isAlive(holder)) throw makeTaken(folder, holder);
      await rm(file, { force: true });
    }
  }

  async release(): Promise<void> {
    await rm(this.file, { force: true });
  }
}

async function readOwner(file: string): Promise<Owner | null> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as Owner;
  } catch {
    // Killed between creating the file and writing it.
    return null;
  }
}

function isAlive({ pid, host, started }: Owner): boolean {
  // Another machine's processes cannot be seen: on a shared disk, its lock counts.
  if (host !== hostname()) return true;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
  }
  return started === readStartTime(pid);
}

/** Clock ticks from boot to the process's start: field 22 of Linux's /proc/<pid>/stat. */
function readStartTime(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field is a name in parentheses that may hold spaces.
    return text.slice(text.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}

function makeTaken(folder: string, { pid, host }: Owner): DataError {
  return new DataError("is in use by another run", {
    code: "data/run-in-use",
    subject: folder,
    expected: "a run folder of its own",
    received: `process ${pid} on ${host} trains into it`,
    remedy: `wait for it, set another trainer.experiment_name, or delete ${join(folder, "run.lock")} if that process is gone`,
  });
}
