import { createRequire, syncBuiltinESMExports } from "node:module";

/**
 * Node's doors to the outside. A child reads its programs and writes their output with functions that it already holds.
 */
const DOORS = [
  "child_process",
  "cluster",
  "dgram",
  "dns",
  "http",
  "http2",
  "https",
  "inspector",
  "net",
  "tls",
  "worker_threads",
];

/**
 * Takes away this thread's ways to make code from text, and its doors to the outside. The programs run in other realms
 * that have neither; this is a second wall, in case a program ever reaches an object of this realm.
 */
export function lockRealm() {
  const refuse = () => {
    throw new EvalError("code from text is not allowed here");
  };
  for (const kind of [() => {}, async () => {}, function* () {}, async function* () {}]) {
    Object.defineProperty(Object.getPrototypeOf(kind), "constructor", { value: refuse, configurable: false });
  }
  const require = createRequire(import.meta.url);
  for (const door of DOORS) {
    const exports = require(`node:${door}`);
    for (const name of Object.keys(exports)) {
      try {
        Object.defineProperty(exports, name, { value: undefined });
      } catch {
        // The accessor cannot be changed; the functions can.
      }
    }
  }
  syncBuiltinESMExports();
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
