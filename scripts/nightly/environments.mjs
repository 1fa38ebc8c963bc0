// Trains the embedded policy in each example environment, seeds 1 to 3, and writes the held-out success to
// environments.json and environments.md next to this file. Needs a build; about 12 minutes on two idle cores.
//   node scripts/nightly/environments.mjs [seeds, for example 1,2]
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..");
const seeds = (process.argv[2] ?? "1,2,3").split(",").map(Number);
const folder = mkdtempSync(join(tmpdir(), "cria-environments-"));

function cria(...args) {
  const bin = join(root, "apps", "trainer", "bin", "cria.mjs");
  const { status, stdout } = spawnSync(process.execPath, [bin, ...args], {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) throw new Error(`cria ${args.join(" ")} ended with ${status}`);
  return stdout;
}

/** Success before and after the demo. */
function runDemo(seed) {
  const { before, after, seconds, steps } = JSON.parse(cria("demo", "--json", "--seed", String(seed)));
  return [
    { environment: "calculator, sampled", before: before.sampled, after: after.sampled },
    { environment: "calculator, greedy", before: before.greedy, after: after.greedy },
  ].map((row) => ({ run: "demo", seed, steps, seconds: seconds.total, ...row }));
}

/** Sampled success of each data source before and after training an example. */
function runExample(name, seed) {
  const started = performance.now();
  const local = join(folder, `${name}-${seed}`);
  cria(
    "train",
    join(root, "examples", name, "config.yaml"),
    "--json",
    `trainer.default_local_dir=${local}`,
    `actor_rollout_ref.rollout.seed=${seed}`,
    `data.seed=${seed}`,
    "actor_rollout_ref.rollout.val_kwargs.do_sample=true",
  );
  const seconds = (performance.now() - started) / 1000;
  const lines = readFileSync(join(local, name, "grpo-lora", "metrics.jsonl"), "utf8")
    .trim()
    .split("\n");
  const metrics = lines.map((line) => JSON.parse(line));
  const [first, last] = [metrics[0], metrics.at(-1)];
  return Object.keys(first)
    .filter((key) => key.startsWith("val-core/") && key.endsWith("/mean@1"))
    .map((key) => ({
      run: name,
      seed,
      steps: last["training/global_step"],
      seconds,
      environment: `${key.split("/")[1]}, sampled`,
      before: first[key],
      after: last[key],
    }));
}

const rows = [];
for (const seed of seeds) {
  rows.push(...runDemo(seed), ...runExample("code-game", seed), ...runExample("mixed", seed));
  console.error(`seed ${seed}: done`);
}
rmSync(folder, { recursive: true, force: true });
const hardware = `${cpus().length} x ${cpus()[0].model}, Node ${process.version}`;
writeFileSync(join(import.meta.dirname, "environments.json"), `${JSON.stringify({ hardware, rows }, null, 2)}\n`);
const table = rows.map(
  (r) =>
    `| ${r.run} | ${r.environment} | ${r.seed} | ${r.before.toFixed(3)} | ${r.after.toFixed(3)} | ${r.steps} | ${Math.round(r.seconds)} |`,
);
const text = `# Environments that the embedded policy learns

Success on held-out rows, before and after training; ${hardware}. Written by \`node scripts/nightly/environments.mjs\`.

| run | environment | seed | before | after | steps | seconds, evaluation included |
|---|---|---|---|---|---|---|
${table.join("\n")}
`;
writeFileSync(join(import.meta.dirname, "environments.md"), text);
console.log(text);
