// Ends `cria train` at random instants, half of them while a checkpoint is being written, by SIGKILL or (one in three) by
// SIGINT, SIGTERM or SIGHUP, resumes it, and compares metrics and weights with a run that nobody disturbed. Needs a build.
//
//   node scripts/nightly/kill-resume.mjs [--kills 50] [--seed <n>] [--out scripts/nightly/kill-resume]
//
// With --out it writes <out>.json and <out>.md. The exit code is 1 when any resumed run differs.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { makeTinyModel } from "../../packages/engine/dist/testing.js";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "50" },
    steps: { type: "string", default: "30" },
    seed: { type: "string", default: String(Date.now() % 1e6) },
    out: { type: "string" },
  },
});
const wanted = Number(values.kills);
const steps = Number(values.steps);
const random = makeRandom(Number(values.seed));

const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

const work = mkdtempSync(join(tmpdir(), "cria-kill-"));
const started = performance.now();
const commit = spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).stdout.trim();
try {
  const config = await writeRun(work);
  const wholeStarted = performance.now();
  const child = startTraining(config, "whole");
  const whole = await child.ended;
  if (whole.code !== 0) throw new Error(`the undisturbed run failed: ${whole.stderr}`);
  const lifetime = performance.now() - wholeStarted;
  const expected = readRun("whole");

  const kills = [];
  const failures = [];
  let rounds = 0;
  while (kills.length < wanted) {
    const name = `killed-${++rounds}`;
    while (kills.length < wanted) {
      const kill = await trainAndKill(config, name, lifetime);
      if (kill.finished) break;
      kills.push({ round: rounds, ...kill });
    }
    const last = await startTraining(config, name).ended;
    if (last.code !== 0) failures.push({ round: rounds, what: `resume failed: ${last.stderr}` });
    else failures.push(...compare(expected, readRun(name)).map((what) => ({ round: rounds, what })));
  }
  const count = (phase) => kills.filter((kill) => kill.phase === phase).length;
  report({
    date: new Date().toISOString(),
    commit,
    node: process.version,
    cpu: cpus()[0]?.model ?? "unknown",
    seed: Number(values.seed),
    steps_of_each_run: steps,
    runs: rounds,
    kills: kills.length,
    while_starting: count("starting"),
    while_training: count("training"),
    while_saving: count("saving"),
    seconds: Math.round((performance.now() - started) / 1000),
    failures,
    instants: kills,
  });
  process.exitCode = failures.length > 0 ? 1 : 0;
} finally {
  rmSync(work, { recursive: true, force: true });
}

/** A random policy of a few thousand weights, five prompts, a reward that it can learn. */
async function writeRun(folder) {
  await makeTinyModel(join(folder, "model.gguf"), { seed: 5, embeddingScale: 0.25 });
  const rows = ["a", "bb", "ccc", "dddd", "eeeee"].map((content, index) => ({
    data_source: "test",
    prompt: [{ role: "user", content }],
    reward_model: { style: "rule", ground_truth: content },
    extra_info: { index },
  }));
  writeFileSync(join(folder, "rows.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  writeFileSync(
    join(folder, "reward.mjs"),
    "export const computeScore = (source, text) => [...text].filter((c) => c.charCodeAt(0) < 128).length / Math.max(1, [...text].length);\n",
  );
  const file = join(folder, "config.yaml");
  const config = {
    actor_rollout_ref: {
      model: { path: "model.gguf", lora_rank: 4, lora_alpha: 8 },
      actor: { optim: { lr: 1e-2, lr_warmup_steps: 5 }, ppo_mini_batch_size: 1 },
      rollout: { n: 4, prompt_length: 48, response_length: 8, max_num_seqs: 16, seed: 1, deterministic: true },
    },
    data: {
      train_files: "rows.jsonl",
      val_files: "rows.jsonl",
      train_batch_size: 2,
      max_prompt_length: 48,
      max_response_length: 8,
    },
    custom_reward_function: { path: "reward.mjs" },
    trainer: {
      default_local_dir: folder,
      threads: 1,
      total_training_steps: steps,
      save_freq: 1,
      test_freq: 4,
      max_actor_ckpt_to_keep: 3,
    },
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

function startTraining(config, name) {
  const bin = join(root, "apps", "trainer", "bin", "cria.mjs");
  const child = spawn(process.execPath, [bin, "train", config, "--json", `trainer.experiment_name=${name}`], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  const ended = new Promise((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal, stderr }));
  });
  return { child, ended };
}

/** One process, killed at a random instant of its life, or shortly after it began to write a checkpoint. */
async function trainAndKill(config, name, lifetime) {
  const checkpoints = join(work, "cria", name, "checkpoints");
  const isSaving = () => list(checkpoints).some((entry) => entry.endsWith(".tmp"));
  const { child, ended } = startTraining(config, name);
  const start = performance.now();
  let running = true;
  ended.then(() => {
    running = false;
  });
  await sleep(random() * lifetime);
  if (random() < 0.5) {
    while (running && !isSaving()) await sleep(0.5);
    await sleep(random() * 12);
  }
  const done = readSteps(name);
  const phase = isSaving() ? "saving" : done.length > 0 ? "training" : "starting";
  const by = random() < 1 / 3 ? Object.keys(exitCodes)[Math.floor(3 * random())] : "SIGKILL";
  child.kill(by);
  const { code, signal, stderr } = await ended;
  // A process that does not listen yet is ended by the signal itself.
  const isEnded = signal === by || code === exitCodes[by];
  if (!isEnded && code !== 0) throw new Error(`a resumed run failed: ${stderr}`);
  return { finished: !isEnded, by, ms: Math.round(performance.now() - start), steps_done: done.at(-1) ?? 0, phase };
}

function list(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function readSteps(name) {
  try {
    return readMetrics(name).map((line) => line["training/global_step"]);
  } catch {
    return [];
  }
}

function readMetrics(name) {
  const text = readFileSync(join(work, "cria", name, "metrics.jsonl"), "utf8");
  return text
    .slice(0, text.lastIndexOf("\n"))
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** What a run computed, without what the clock says. */
function readRun(name) {
  const timed = /^(timing_|perf\/(throughput|time_per_step))/;
  const metrics = readMetrics(name).map((line) =>
    Object.fromEntries(Object.entries(line).filter(([key]) => !timed.test(key))),
  );
  return { metrics, adapter: readFileSync(join(work, "cria", name, "adapter.gguf")) };
}

function compare(expected, actual) {
  const differences = [];
  if (actual.metrics.length !== expected.metrics.length)
    differences.push(`${actual.metrics.length} lines of metrics, ${expected.metrics.length} expected`);
  expected.metrics.forEach((line, i) => {
    for (const [key, value] of Object.entries(line)) {
      const other = actual.metrics[i]?.[key];
      if (other !== value) differences.push(`line ${i}: ${key} is ${other}, ${value} expected`);
    }
  });
  if (!actual.adapter.equals(expected.adapter)) differences.push("the adapter has other bytes");
  return differences;
}

function report(result) {
  console.log(JSON.stringify({ ...result, instants: undefined }));
  if (!values.out) return;
  mkdirSync(dirname(values.out), { recursive: true });
  writeFileSync(`${values.out}.json`, `${JSON.stringify(result, null, 2)}\n`);
  const table = result.instants
    .map((kill) => `| ${kill.round} | ${kill.by} | ${kill.ms} | ${kill.steps_done} | ${kill.phase} |`)
    .join("\n");
  writeFileSync(
    `${values.out}.md`,
    `# Killed and resumed

\`node scripts/nightly/kill-resume.mjs --kills ${wanted} --seed ${values.seed}\`, ${result.date}, commit ${result.commit},
Node ${result.node}, ${result.cpu}.

${result.kills} processes ended by a signal, two in three by SIGKILL (${result.while_starting} while starting, ${result.while_training} while training,
${result.while_saving} while a checkpoint was being written), over ${result.runs} runs of ${steps} steps with a checkpoint after each.
Metrics of every step and the bytes of the adapter, compared with an undisturbed run: **${result.failures.length} differences**.
It took ${result.seconds} s.

| run | by | ended after, ms | steps done | phase |
| --- | --- | --- | --- | --- |
${table}
`,
  );
}

/** Uniform numbers in [0, 1) from a seed (mulberry32). */
function makeRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
