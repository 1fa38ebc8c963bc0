// Run by `npm test` after bootstrap: lint, types, tests; then the tests about bits again with each other kernel that
// this CPU can run. Failures are shown at once, and again at the end; the exit code is 1 if any failed. Arguments go to
// the tests, which then run alone.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { loadAddon } from "../native/index.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = (name) => join(root, "node_modules", ".bin", name);
const chosen = process.argv.slice(2);

// Determinism, prefix reuse, scores, training, the demo.
const TESTS_OF_BITS = [
  "packages/engine/src/batch-bits.test.ts",
  "packages/engine/src/generation.test.ts",
  "packages/engine/src/gradients.test.ts",
  "packages/engine/src/prefix-reuse.test.ts",
  "packages/engine/src/recurrent-state.test.ts",
  "packages/engine/src/torch-reference.test.ts",
  "packages/engine/src/training.test.ts",
  "packages/trainer/src/agent-loop.test.ts",
  "apps/trainer/src/demo/demo.test.ts",
];

// Files that change their process for good, or measure all of it. Each has a separate process, which loads every module
// anew (a second of CPU time). All others share a few processes and every module in them, and must leave nothing
// behind (tests/leave-nothing.ts).
const TESTS_WITH_OWN_PROCESS = [
  // A CPU kernel is chosen once.
  "packages/engine/src/cpu-kernel.test.ts",
  // Another copy of llama.cpp takes over its log.
  "packages/tokenizer-delta/src/control-tokens.test.ts",
  "packages/tokenizer-delta/src/explain-mismatch.test.ts",
  "packages/tokenizer-delta/src/parse-template.test.ts",
  "packages/tokenizer-delta/src/piece-tokenizer.test.ts",
  "packages/tokenizer-delta/src/template-matrix.test.ts",
  "packages/trainer/src/task/tool-templates.test.ts",
  "models/src/stock-llama.test.ts",
  "apps/trainer/src/commands/adapter-import.test.ts",
  "apps/trainer/src/commands/eval-export.test.ts",
  "tests/readme.test.ts",
  // Modules are replaced.
  "packages/cluster/src/nats/nats-lost-store.test.ts",
  "packages/engine/src/images/open-projector.test.ts",
  "packages/rollout/src/tracing/open-tracer.test.ts",
  // Signals are sent to the process, or a client's package listens to them.
  "apps/trainer/src/commands/listen-for-signals.test.ts",
  "tests/clients/clients.test.ts",
  "tests/clients/table.test.ts",
  // Memory and the event loop are measured.
  "packages/engine/src/images/pictures.test.ts",
  "packages/engine/src/soak.test.ts",
  "packages/rollout/src/loops/load.test.ts",
  "apps/trainer/src/view/index/index.test.ts",
  "apps/trainer/src/serve/soak.test.ts",
];

/** Kernels that the tests have not run with: the process's own choice is among the usable ones. */
function listOtherKernels() {
  const { cpuKernel, usableCpuKernels } = loadAddon().runtimeInfo();
  return usableCpuKernels.filter((kernel) => kernel !== cpuKernel);
}

/** They run side by side, before the tests. */
const checks = [
  ["lint", bin("biome"), ["check", "."]],
  ["types", bin("tsc"), ["-p", "tsconfig.json"]],
  ["types of the viewer", bin("tsc"), ["-p", "apps/viewer/tsconfig.json"]],
];
const steps = [];
if (chosen.length > 0) steps.push(["tests", bin("vitest"), ["run", ...chosen]]);
else {
  const others = TESTS_WITH_OWN_PROCESS.flatMap((path) => ["--exclude", path]);
  steps.push(["tests", bin("vitest"), ["run", "--no-isolate", ...others]]);
  steps.push(["tests with a process each", bin("vitest"), ["run", ...TESTS_WITH_OWN_PROCESS]]);
  for (const kernel of listOtherKernels())
    steps.push([
      `tests, kernel ${kernel}`,
      bin("vitest"),
      ["run", "--no-isolate", ...TESTS_OF_BITS],
      { CRIA_CPU_KERNEL: kernel },
    ]);
}

/** Failures with their output, repeated at the end. */
const failures = [];
function report(title, status, started, told = []) {
  console.log(`${title}: ${status === 0 ? "ok" : "FAILED"} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  if (status !== 0) failures.push(`${title}: FAILED`, ...told);
}

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

async function check([title, command, args]) {
  const started = Date.now();
  const child = spawn(command, args, { cwd: root, stdio: "inherit" });
  const [status] = await once(child, "close");
  report(title, status, started);
}

await Promise.all(checks.map(check));
const reports = mkdtempSync(join(tmpdir(), "cria-tests-"));
for (const [i, [title, command, args, env]] of steps.entries()) {
  const started = Date.now();
  const file = join(reports, `${i}.json`);
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
  const { status } = spawnSync(command, [...args, ...reporters], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  report(title, status, started, status === 0 ? [] : listFailedTests(file));
}
rmSync(reports, { recursive: true, force: true });
if (failures.length > 0) console.log(`\n${failures.join("\n")}`);
process.exit(failures.length > 0 ? 1 : 0);
