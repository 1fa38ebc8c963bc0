import { readFileSync } from "node:fs";
import { freemem, totalmem } from "node:os";

/** What a process can still get: Linux's MemAvailable, or less where a container limits it. */
export function readAvailableMemory(): number {
  let available = freemem();
  try {
    const kilobytes = /MemAvailable:\s+(\d+) kB/.exec(readFileSync("/proc/meminfo", "utf8"))?.[1];
    if (kilobytes) available = 1024 * Number(kilobytes);
  } catch {
    // Not Linux: free memory is what the system says.
  }
  const limit = process.constrainedMemory();
  return limit > 0 && limit < totalmem() ? Math.min(available, limit - process.memoryUsage.rss()) : available;
}
