import { readlinkSync } from "node:fs";

/**
 * Takes the ways to make code from text out of this thread's own realm, and its doors to the outside. The programs run
 * in realms of their own that know none of this; it is the second wall, should one ever reach an object from here.
 */
export function lockRealm() {
  const refuse = () => {
    throw new EvalError("code from text is not allowed here");
  };
  for (const kind of [() => {}, async () => {}, function* () {}, async function* () {}]) {
    Object.defineProperty(Object.getPrototypeOf(kind), "constructor", { value: refuse, configurable: false });
  }
  for (const name of [
    "process",
    "fetch",
    "WebSocket",
    "Worker",
    "eval",
    "Function",
    "BroadcastChannel",
    "EventSource",
  ]) {
    Object.defineProperty(globalThis, name, { value: undefined, configurable: false, writable: false });
  }
}

/**
 * The file that tells the CPU time of the calling thread, on Linux.
 * @returns {string | null}
 */
export function findCpuFile() {
  try {
    return `/proc/${readlinkSync("/proc/thread-self")}/stat`;
  } catch {
    return null;
  }
}
