import { readFileSync } from "node:fs";

/** Most memory that this process has held at once, in bytes (resident). */
export function peakMemory(): number {
  try {
    // On Linux, getrusage's value starts from that of the parent process, so /proc is read instead.
    const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
    if (kilobytes !== undefined) return 1024 * Number(kilobytes);
  } catch {
    // Other systems have no /proc.
  }
  return 1024 * process.resourceUsage().maxRSS;
}
