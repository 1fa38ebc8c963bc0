// What `npm test` runs after bootstrap: lint, types, tests; then what must hold for bits once more with each other kernel that
// this CPU can run. Each failure is shown; the exit code is 1 if any failed. Arguments go to the tests, which then run alone.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
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
  "packages/engine/src/torch-reference.test.ts",
  "packages/engine/src/training.test.ts",
  "packages/trainer/src/agent-loop.test.ts",
  "apps/trainer/src/demo/demo.test.ts",
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
const steps = [["tests", bin("vitest"), ["run", ...chosen]]];
if (chosen.length === 0) {
  for (const kernel of listOtherKernels())
    steps.push([`tests, kernel ${kernel}`, bin("vitest"), ["run", ...TESTS_OF_BITS], { CRIA_CPU_KERNEL: kernel }]);
}

let failed = false;
function report(title, status, started) {
  console.log(`${title}: ${status === 0 ? "ok" : "FAILED"} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  if (status !== 0) failed = true;
}

async function check([title, command, args]) {
  const started = Date.now();
  const child = spawn(command, args, { cwd: root, stdio: "inherit" });
  const [status] = await once(child, "close");
  report(title, status, started);
}

await Promise.all(checks.map(check));
for (const [title, command, args, env] of steps) {
  const started = Date.now();
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit", env: { ...process.env, ...env } });
  report(title, status, started);
}
process.exit(failed ? 1 : 0);
