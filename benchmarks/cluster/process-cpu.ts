import { readFileSync } from "node:fs";

/** Clock ticks a second of /proc/<pid>/stat: 100 on every Linux that Node runs on. */
const TICKS = 100;

/**
 * Seconds of CPU that a process has used, its ended children left out. Linux.
 * @throws Error when it is not there any more.
 */
export function readCpuSeconds(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name, in brackets, may hold anything; user and system time are the 14th and 15th field.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}
