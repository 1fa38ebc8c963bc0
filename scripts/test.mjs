// Run by `npm test` after bootstrap: lint, types, tests, and the tests about bits again with each other kernel that this
// CPU can run. Failures are shown when their step ends, and again at the end; the exit code is 1 if any failed. Arguments
// go to the tests: then no others run.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { loadAddon } from "../native/index.mjs";
import { packageProgram } from "./programs.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const chosen = process.argv.slice(2);

// Determinism, prefix reuse, scores, training, the demo.
const TESTS_OF_BITS = [
  "packages/engine/src/batch-bits.test.ts",
  "packages/engine/src/drafting.test.ts",
  "packages/engine/src/generation.test.ts",
  "packages/engine/src/gradients.test.ts",
  "packages/engine/src/prefix-reuse.test.ts",
  "packages/engine/src/recurrent-state.test.ts",
  "packages/engine/src/torch-reference.test.ts",
  "packages/engine/src/training.test.ts",
  "packages/trainer/src/agent-loop.test.ts",
  "apps/trainer/src/demo/demo.test.ts",
];

// Another copy of llama.cpp takes over its log for good. These files share a process with each other.
const TESTS_WITH_STOCK_LLAMA = [
  "packages/tokenizer-delta/src/control-tokens.test.ts",
  "packages/tokenizer-delta/src/explain-mismatch.test.ts",
  "packages/tokenizer-delta/src/parse-template.test.ts",
  "packages/tokenizer-delta/src/piece-tokenizer.test.ts",
  "packages/tokenizer-delta/src/template-matrix.test.ts",
  "packages/trainer/src/policy/observations.test.ts",
  "packages/trainer/src/task/tool-templates.test.ts",
  "models/src/stock-llama.test.ts",
  "apps/trainer/src/commands/adapter-import.test.ts",
  "apps/trainer/src/commands/eval-export.test.ts",
  "tests/readme.test.ts",
  "packages/tokenizer-delta/src/tool-schemas.test.ts",
];

// Files that change their process for good in other ways, or measure all of it. Each has a separate process, which loads
// every module anew (a second of CPU time and more). All others share a few processes and every module in them, and must
// leave nothing behind (tests/leave-nothing.ts).
const TESTS_WITH_OWN_PROCESS = [
  // A CPU kernel is chosen once.
  "packages/engine/src/cpu-kernel.test.ts",
  // Modules are replaced.
  "packages/cluster/src/nats/nats-lost-store.test.ts",
  "packages/engine/src/images/open-projector.test.ts",
  "packages/rollout/src/tracing/open-tracer.test.ts",
  // Signals are sent to the process, or a client's package listens to them.
  "apps/trainer/src/commands/listen-for-signals.test.ts",
  "tests/clients/clients.test.ts",
  "tests/clients/table.test.ts",
  // Memory and the event loop are measured.
  "packages/engine/src/images/large-pictures.test.ts",
  "packages/engine/src/images/pictures.test.ts",
  "packages/engine/src/soak.test.ts",
  "packages/rollout/src/loops/load.test.ts",
  "apps/trainer/src/view/index/index.test.ts",
  "apps/trainer/src/serve/soak.test.ts",
];

/** Kernels that the tests have not run with: the process's own choice is among the usable ones. */
function listOtherKernels() {
  const addon = /** @type {import("../packages/engine/src/native-types.ts").NativeAddon} */ (loadAddon());
  const { cpuKernel, usableCpuKernels } = addon.runtimeInfo();
  return usableCpuKernels.filter((kernel) => kernel !== cpuKernel);
}

/** @typedef {{ title: string, command: string, args: string[], env?: NodeJS.ProcessEnv, reports?: boolean }} Step */

/** @type {(title: string, program: string[], args: string[]) => Step} */
const step = (title, [command, ...before], args) => ({ title, command, args: [...before, ...args] });
/** @type {(title: string, args: string[], env?: NodeJS.ProcessEnv) => Step} */
const test = (title, args, env) => ({
  ...step(title, packageProgram(root, "vitest"), ["run", ...args]),
  env,
  reports: true,
});
const tsc = packageProgram(root, "typescript", "tsc");
/** Types of a part; checks only what changed since the last time, and what depends on that. */
const types = (title, config) =>
  step(title, tsc, [
    ...["-p", config, "--incremental", "--tsBuildInfoFile"],
    join(root, "node_modules", ".cache", `cria-${config.replace(".json", "")}.tsbuildinfo`),
  ]);
const checks = [
  step("lint", packageProgram(root, "@biomejs/biome", "biome"), ["check", "."]),
  types("types", "tsconfig.json"),
  types("types of scripts", "tsconfig.scripts.json"),
  step("types of the viewer", tsc, ["-p", "apps/viewer/tsconfig.json"]),
];

/**
 * Each lane runs its steps one after the other, beside the other lane. Two processes share most tests: those wait for
 * servers, browsers and programs a third of the time, in which the second lane's one process uses the cores.
 */
const lanes = chosen.length > 0 ? [[test("tests", chosen)], checks] : [[], checks];
if (chosen.length === 0) {
  const alone = "--poolOptions.forks.minForks=1 --poolOptions.forks.maxForks=1".split(" ");
  const others = [...TESTS_WITH_STOCK_LLAMA, ...TESTS_WITH_OWN_PROCESS].flatMap((path) => ["--exclude", path]);
  const shared = (title, args, env) => test(title, ["--no-isolate", ...alone, ...args], env);
  lanes[0].push(test("tests", ["--no-isolate", ...others]));
  lanes[1].push(
    shared("tests with stock llama.cpp", TESTS_WITH_STOCK_LLAMA, { CRIA_TESTS_WITH_STOCK_LLAMA: "1" }),
    test("tests with a process each", [...alone, ...TESTS_WITH_OWN_PROCESS]),
    ...listOtherKernels().map((kernel) =>
      shared(`tests, kernel ${kernel}`, TESTS_OF_BITS, { CRIA_CPU_KERNEL: kernel }),
    ),
  );
}

/** Failures with their output, repeated at the end. */
const failures = [];

/** The failed tests of a report that vitest wrote; of a run that wrote none, nothing. */
function listFailedTests(file) {
  if (!existsSync(file)) return ["  the run ended without a report"];
  const { testResults } = JSON.parse(readFileSync(file, "utf8"));
  const show = (title, message) => {
    const lines = message.split("\n").filter((line) => !line.includes("node_modules"));
    return [`  ${title}`, ...lines.slice(0, 12).map((line) => `    ${line}`)].join("\n");
  };
  return testResults.flatMap(({ name, status, message, assertionResults }) => {
    const path = relative(root, name);
    const failed = assertionResults.filter((test) => test.status === "failed");
    if (failed.length === 0) return status === "failed" ? [show(path, message)] : [];
    return failed.map(({ fullName, failureMessages }) => show(`${path} > ${fullName}`, failureMessages.join("\n")));
  });
}

/** The end of a step's output from the first error on that belongs to no test; without one, its last lines. */
function listOtherErrors(output) {
  const lines = stripVTControlCharacters(output).trimEnd().split("\n");
  const first = lines.findIndex((line) => line.includes("Unhandled Error"));
  return (first < 0 ? lines.slice(-20) : lines.slice(first, first + 40)).map((line) => `  ${line}`);
}

const folder = mkdtempSync(join(tmpdir(), "cria-tests-"));
/** Most characters of a step's output that are kept for the end. */
const MOST_OUTPUT = 200_000;

/**
 * Runs one step. Its output is shown as it comes, or (`later`) at its end, so that two steps do not mix theirs.
 * @param {Step} step @param {boolean} later
 */
async function run({ title, command, args, env, reports }, later) {
  const started = Date.now();
  const file = join(folder, `${title}.json`);
  const reporters = reports ? ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`] : [];
  const child = spawn(command, [...args, ...reporters], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...(process.stdout.isTTY ? { FORCE_COLOR: "1" } : {}), ...env },
  });
  const held = [];
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (bytes) => {
      output = (output + bytes).slice(-MOST_OUTPUT);
      if (later) held.push(bytes);
      else process.stdout.write(bytes);
    });
  const [status, signal] = await once(child, "close");
  process.stdout.write(Buffer.concat(held));
  console.log(`${title}: ${status === 0 ? "ok" : "FAILED"} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  if (status === 0) return;
  const failed = reports ? listFailedTests(file) : [];
  failures.push(`${title}: FAILED${signal ? ` by ${signal}` : ""}`, ...failed);
  if (failed.length === 0) failures.push(...listOtherErrors(output));
}

await Promise.all(
  lanes.map(async (steps, lane) => {
    for (const step of steps) await run(step, lane > 0);
  }),
);
rmSync(folder, { recursive: true, force: true });
if (failures.length > 0) console.log(`\n${failures.join("\n")}`);
process.exit(failures.length > 0 ? 1 : 0);
