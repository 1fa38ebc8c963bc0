import { createRequire } from "node:module";
import { afterAll, expect, vi } from "vitest";

// Tests of bits share a process for each other kernel (scripts/test.mjs): what one file leaves there, the next would run with.

// node-llama-cpp's `proper-lockfile` listens to every signal that ends a process, once it is loaded, and for good: it removes its
// locks then, and ends the process as if it had not listened. It is loaded here, so that no file is the first.
const fromLlama = createRequire(
  createRequire(new URL("../native/package.json", import.meta.url)).resolve("node-llama-cpp"),
);
fromLlama("proper-lockfile");

const EVENTS = ["SIGHUP", "SIGINT", "SIGTERM", "unhandledRejection", "uncaughtException"];

const look = () => ({
  cwd: process.cwd(),
  argv: [...process.argv],
  env: { ...process.env },
  exitCode: process.exitCode,
  replaced: { fetch: globalThis.fetch, log: console.log, error: console.error, write: process.stdout.write },
  listeners: EVENTS.map((name) => `${name}: ${process.listenerCount(name)}`),
});

// It is taken anew before each file is imported.
const before = look();

afterAll(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  vi.useRealTimers();
  expect(look(), "what this file left in its process").toEqual(before);
});
