import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { afterAll, expect, vi } from "vitest";
import {
  advantageEstimators,
  aggregations,
  klEstimates,
  policyLosses,
  rewardStrategies,
} from "../packages/algorithms/src/index.js";
import type { Registry } from "../packages/core/src/index.js";
import { agentLoops, rewardFunctions, rewardManagers } from "../packages/rollout/src/internal.js";
import { registeredFormatNames } from "../packages/tools/src/formats/format-names.js";
import { interactionClasses, toolClasses, toolFormats } from "../packages/tools/src/index.js";

// Most test files share a process in `npm test` (scripts/test.mjs), and our modules with it: loading them anew for each
// file takes longer than most files do. Anything that a file leaves there would affect the next. State of our modules
// are the registries: they get back the entries that they had.
const registries: readonly Registry<unknown>[] = [
  ...[advantageEstimators, policyLosses, klEstimates, aggregations, rewardStrategies],
  ...[toolClasses, toolFormats, interactionClasses, agentLoops, rewardManagers, rewardFunctions],
] as Registry<unknown>[];
/** The entries of each registry; the last are names of formats, which are known without the formats. */
const maps: readonly Map<string, unknown>[] = [
  ...registries.map((registry) => registry["own"]),
  registeredFormatNames as Map<string, unknown>,
];
const entries = maps.map((map) => new Map(map));

function restoreRegistries(): void {
  for (const [i, map] of maps.entries()) {
    map.clear();
    for (const [name, entry] of entries[i]!) map.set(name, entry);
  }
}

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

// A second copy of llama.cpp takes over the log of the addon's. Files that use it share processes with each other alone.
const { CRIA_TESTS_WITH_STOCK_LLAMA: usesStockLlama } = process.env;

const look = () => ({
  cwd: process.cwd(),
  argv: [...process.argv],
  env: { ...process.env },
  exitCode: process.exitCode,
  replaced: { fetch: globalThis.fetch, log: console.log, error: console.error, write: process.stdout.write },
  hasOtherLlama: !usesStockLlama && existsSync(MAPS) && readFileSync(MAPS, "utf8").includes("llama-addon.node"),
  listeners: EVENTS.map((name) => `${name}: ${process.listenerCount(name)}`),
});

// It is taken anew before each file is imported.
const before = look();

afterAll(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  vi.useRealTimers();
  restoreRegistries();
  expect(
    look(),
    "what this file left in its process; scripts/test.mjs lists files with a process of their own",
  ).toEqual(before);
});
