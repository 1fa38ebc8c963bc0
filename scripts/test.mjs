// What `npm test` runs after bootstrap: lint, types, tests. Each failure is shown; the exit code is 1 if any failed.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = (name) => join(root, "node_modules", ".bin", name);
const steps = [
  ["lint", bin("biome"), ["check", "."]],
  ["types", bin("tsc"), ["-p", "tsconfig.json"]],
  ["tests", bin("vitest"), ["run", ...process.argv.slice(2)]],
];

let failed = false;
for (const [title, command, args] of steps) {
  const started = Date.now();
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  console.log(`${title}: ${status === 0 ? "ok" : "FAILED"} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  if (status !== 0) failed = true;
}
process.exit(failed ? 1 : 0);
