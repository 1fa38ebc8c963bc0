import { readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 200;
/** Interval at which a lock's owner updates it, and the longest silence. The owner may be on another machine. */
const BEAT_MS = 2_000;
const STALE_MS = 20_000;

/**
 * Waits until no other process downloads the same file, then locks it. The lock of a dead process is ignored.
 * @returns a function that releases the lock.
 */
export async function lockDownload(file: string, signal?: AbortSignal): Promise<() => Promise<void>> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      await writeFile(file, `${process.pid} ${hostname()}`, { flag: "wx" });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      if (await isAbandoned(file)) await rm(file, { force: true });
      else await sleep(POLL_MS);
      continue;
    }
    const beat = setInterval(() => utimes(file, new Date(), new Date()).catch(() => undefined), BEAT_MS).unref();
    return async () => {
      clearInterval(beat);
      await rm(file, { force: true });
    };
  }
}

async function isAbandoned(file: string): Promise<boolean> {
  try {
    if (Date.now() - (await stat(file)).mtimeMs > STALE_MS) return true;
    const [pid, host] = (await readFile(file, "utf8")).split(" ");
    if (host !== hostname()) return false;
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}
