import { readFileSync } from "node:fs";
import { freemem, totalmem } from "node:os";

/** Memory that the process can still get: Linux's MemAvailable, or less under a container's limit. */
export function readAvailableMemory(): number {
  let available = freemem();
  try {
    const kilobytes = /MemAvailable:\s+(\d+) kB/.exec(readFileSync("/proc/meminfo", "utf8"))?.[1];
    if (kilobytes) available = 1024 * Number(kilobytes);
  } catch {
    // Not Linux: the system's free memory.
  }
  const limit = process.constrainedMemory();
  return limit > 0 && limit < totalmem() ? Math.min(available, limit - process.memoryUsage.rss()) : available;
}
