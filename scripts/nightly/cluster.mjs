// Trains the demo's task with and without other machines, and with faults: workers that are killed, a nats-server that
// is killed and started again, a coordinator that is killed while a standby waits. Each adapter must have one SHA-256.
// All machines are processes on this one, over a nats-server from Debian. Needs a build.
//
//   node --import tsx scripts/nightly/cluster.mjs [--steps 30] [--seed <n>] [--only TEXT] [--out scripts/nightly/cluster]
//
// With --out it writes <out>.json and <out>.md. The exit code is 1 when an adapter differs.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runOnCluster } from "../../packages/cluster/src/testing/cluster-runs.ts";
import { NatsServer } from "../../packages/cluster/src/testing/nats-process.ts";
import { makeUniform } from "../../packages/core/dist/index.js";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const { values } = parseArgs({
  options: {
    steps: { type: "string", default: "30" },
    seed: { type: "string", default: String(Date.now() % 1e6) },
    only: { type: "string", default: "" },
    out: { type: "string" },
  },
});
const steps = Number(values.steps);
const seed = Number(values.seed);
const scenarios = [
  { name: "no bus", workers: 0 },
  ...[1, 2, 3, 7].map((workers) => ({ name: `${workers} ${workers === 1 ? "worker" : "workers"}`, workers })),
  { name: "3 workers, 20 of them killed", workers: 3, workerKills: 20 },
  { name: "3 workers, nats-server killed", workers: 3, natsRestart: true },
  { name: "2 workers, coordinator killed", workers: 2, coordinatorKill: true },
].filter(({ name }) => name.includes(values.only));

const work = mkdtempSync(join(tmpdir(), "cria-cluster-"));
const started = performance.now();
let server;
try {
  const runs = [];
  for (const [i, scenario] of scenarios.entries()) {
    await server?.dispose();
    server = new NatsServer();
    await server.start();
    const run = await runOnCluster({
      cria: [process.execPath, join(root, "apps", "trainer", "bin", "cria.mjs")],
      config: join(root, "examples", "calculator", "config.yaml"),
      overrides: [
        "trainer.threads=1",
        "trainer.val_before_train=false",
        "data.val_files=null",
        // The state from which a killed coordinator's successor goes on.
        "trainer.save_freq=5",
        "cluster.silence_s=3",
        "cluster.audit=0.02",
      ],
      folder: work,
      steps,
      server,
      random: makeUniform(seed + i),
      ...scenario,
      name: `run-${i}`,
    });
    runs.push({ name: scenario.name, workers: scenario.workers, ...run });
    console.log(`${scenario.name.padEnd(32)} ${run.sha.slice(0, 16)}  ${run.seconds} s  ${describeMishaps(run)}`);
  }
  const shas = new Set(runs.map(({ sha }) => sha));
  report({
    date: new Date().toISOString(),
    commit: spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).stdout.trim(),
    node: process.version,
    cpu: cpus()[0]?.model ?? "unknown",
    seed,
    steps,
    seconds: Math.round((performance.now() - started) / 1000),
    equal: shas.size === 1,
    runs,
  });
  process.exitCode = shas.size === 1 ? 0 : 1;
} finally {
  await server?.dispose();
  rmSync(work, { recursive: true, force: true });
}

function describeMishaps({ workerKills, natsRestarts, coordinatorKills }) {
  const said = [
    workerKills && `${workerKills} workers killed`,
    natsRestarts && "nats-server killed and started again",
    coordinatorKills && "coordinator killed, a standby went on",
  ].filter(Boolean);
  return said.join(", ") || "nothing";
}

function report(result) {
  if (!values.out) return;
  writeFileSync(`${values.out}.json`, `${JSON.stringify(result, null, 2)}\n`);
  const rows = result.runs.map(
    (run) =>
      `| ${run.name} | \`${run.sha.slice(0, 16)}\` | ${describeMishaps(run)} | ${run.jobsElsewhere} of ${run.jobsElsewhere + run.jobsHere} | ${run.redelivered} | ${run.seconds} |`,
  );
  const text = `# One adapter, whoever computes

The demo's task, ${result.steps} steps: the adapter's SHA-256 is ${result.equal ? "one" : "NOT one"} over all runs. Machines are processes of this one,
with one thread each.

| run | SHA-256 of the adapter | what happened | jobs done by workers | redelivered | seconds |
|---|---|---|---|---|---|
${rows.join("\n")}

${result.date.slice(0, 10)}, commit ${result.commit}, ${result.cpu}, Node ${result.node}, seed ${result.seed}.
`;
  writeFileSync(`${values.out}.md`, text);
}
