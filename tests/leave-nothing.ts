import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { afterAll, expect, vi } from "vitest";

// Most test files share a process in `npm test` (scripts/test.mjs): anything that one of them leaves there would affect
// the next.

// State of our modules, such as registries, is reset: each file imports them anew. Only modules that Node itself has
// loaded stay: node_modules and the addon. Evaluating ours again is cheap, since V8 caches the code.
vi.resetModules();

// node-llama-cpp's `proper-lockfile` listens to every signal that ends a process, once it is loaded, and for good: it
// removes its locks then, and ends the process as if it had not listened. It is loaded here, so that no file is the
// first.
const fromLlama = createRequire(
  createRequire(new URL("../native/package.json", import.meta.url)).resolve("node-llama-cpp"),
);
fromLlama("proper-lockfile");

/** Libraries loaded by the process; only Linux has this file. */
const MAPS = "/proc/self/maps";
const EVENTS = ["SIGHUP", "SIGINT", "SIGTERM", "unhandledRejection", "uncaughtException"];

const look = () => ({
  cwd: process.cwd(),
  argv: [...process.argv],
  env: { ...process.env },
  exitCode: process.exitCode,
  replaced: { fetch: globalThis.fetch, log: console.log, error: console.error, write: process.stdout.write },
  // A second copy of llama.cpp takes over the log of the addon's.
  hasOtherLlama: existsSync(MAPS) && readFileSync(MAPS, "utf8").includes("llama-addon.node"),
  listeners: EVENTS.map((name) => `${name}: ${process.listenerCount(name)}`),
});

// It is taken anew before each file is imported.
const before = look();

afterAll(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  vi.useRealTimers();
  expect(
    look(),
    "what this file left in its process; scripts/test.mjs lists files with a process of their own",
  ).toEqual(before);
});
