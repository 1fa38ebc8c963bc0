// Checks that two short trainings and a short demo still compute the bits in tests/recorded-bits.json: 20 steps with
// LoRA (the adapter's SHA-256, every metric), 3 steps of full training (the model's), and the demo's success. The
// policy is the embedded one, the task the calculator, everything in F32. Each CPU kernel has its record, with ggml's
// build of that name. It runs the sources of the command line, so only the addon has to be built.
//
//   node scripts/check-bits.mjs [--kernel <name>]... [--demo] [--write]
//
// Without --kernel, every kernel that this CPU has. --demo also runs the whole demo (some minutes a kernel). --write
// records instead of comparing. Prints a line for each kernel; the exit code is 1 when bits differ, 2 when nothing is
// recorded.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { loadAddon } from "../native/index.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const recordFile = join(root, "tests", "recorded-bits.json");
const config = join(root, "examples", "calculator", "config.yaml");

const SMALL = [
  "trainer.threads=1",
  "data.train_batch_size=4",
  "actor_rollout_ref.rollout.n=4",
  "data.val_max_samples=24",
];
const TRAINING = [
  ...SMALL,
  "actor_rollout_ref.actor.ppo_mini_batch_size=4",
  "actor_rollout_ref.rollout.seed=7",
  "data.seed=7",
];
/** Metrics that depend on the clock, or on the cache's content when a request arrived. */
const VARYING = /^(timing_|perf\/|engine\/)/;

const addon = /** @type {import("../packages/engine/src/native-types.ts").NativeAddon} */ (loadAddon());
export const { usableCpuKernels: usableKernels, cpuKernel: ownKernel } = addon.runtimeInfo();

/** Architecture, kernel, and the build of ggml that comes with it, for example "x64 avx2 haswell". */
export function nameRecord(kernel) {
  const addon = JSON.stringify(new URL("../native/index.mjs", import.meta.url).href);
  const script = `import(${addon}).then(({ loadAddon }) => console.log(loadAddon().runtimeInfo().ggmlBuild))`;
  const { stdout, stderr } = spawnSync(process.execPath, ["-e", script], {
    encoding: "utf8",
    env: { ...process.env, CRIA_CPU_KERNEL: kernel },
  });
  if (!stdout) throw new Error(`the addon with kernel ${kernel}: ${stderr}`);
  return `${process.arch} ${kernel} ${stdout.trim()}`;
}

/**
 * @typedef {{ sha256: string, metrics: Record<string, string> }} RecordedTraining metrics: a digest of each one's values over
 *   the steps
 * @typedef {{ sampled: number, greedy: number }} Success
 * @typedef {{ steps: number, before: Success, after: Success }} RecordedDemo
 * @typedef {{ lora: RecordedTraining, full: RecordedTraining, shortDemo: RecordedDemo, demo?: RecordedDemo }} RecordedBits
 */

/** @returns {Record<string, RecordedBits & { platform: ReturnType<typeof describePlatform> }>} by `nameRecord` */
export function readRecords() {
  return JSON.parse(readFileSync(recordFile, "utf8"));
}

/** This machine's libraries: results depend on the C library's exp and log, and on V8's. */
export function describePlatform() {
  const { header } = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  const { glibcVersionRuntime } = header;
  return { glibc: glibcVersionRuntime ?? "none", v8: process.versions.v8 };
}

/** Standard output of the command line in a process of its own; throws with its output when it fails. */
async function runCria(kernel, cwd, args) {
  const tsx = createRequire(import.meta.url).resolve("tsx");
  const cli = join(root, "apps", "trainer", "src", "cli.ts");
  const child = spawn(process.execPath, ["--conditions=cria-source", "--import", tsx, cli, ...args], {
    cwd,
    env: { ...process.env, CRIA_CPU_KERNEL: kernel },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (text) => {
    stdout += text;
  });
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`cria ${args[0]} with kernel ${kernel} ended with ${code}:\n${stderr}${stdout}`);
  return stdout;
}

const hash = (data) => createHash("sha256").update(data).digest("hex");

/** `{ sha256 of the weights, metrics: name -> digest of its values over the steps }` of a training. */
async function train(run, folder, weights, overrides) {
  const place = `trainer.default_local_dir=${folder}`;
  await run(folder, ["train", config, place, 'trainer.logger=["file"]', ...TRAINING, ...overrides]);
  const made = join(folder, "calculator", "grpo-lora");
  const lines = readFileSync(join(made, "metrics.jsonl"), "utf8").trim().split("\n");
  const steps = lines.map((line) => JSON.parse(line));
  const names = [...new Set(steps.flatMap(Object.keys))].filter((name) => !VARYING.test(name)).sort();
  const digest = (name) => hash(JSON.stringify(steps.flatMap((step) => step[name] ?? []))).slice(0, 16);
  const metrics = Object.fromEntries(names.map((name) => [name, digest(name)]));
  return { sha256: hash(readFileSync(join(made, weights))), metrics };
}

async function runDemo(run, folder, ...args) {
  const { steps, before, after } = JSON.parse(await run(folder, ["demo", "--json", "--seed", "1", ...args]));
  return { steps, before, after };
}

/**
 * The bits that `kernel` computes; with `whole`, also those of the complete demo.
 * @param run takes a folder to work in and arguments of `cria`, and gives its standard output
 */
export async function computeBits(kernel, { whole = false, run = (...given) => runCria(kernel, ...given) } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "cria-bits-"));
  const make = (name) => mkdtempSync(join(folder, `${name}-`));
  try {
    return {
      lora: await train(run, make("lora"), "adapter.gguf", ["trainer.total_training_steps=20"]),
      full: await train(run, make("full"), "model.gguf", [
        "trainer.total_training_steps=3",
        "actor_rollout_ref.model.lora_rank=0",
        "actor_rollout_ref.actor.optim.lr=1e-4",
      ]),
      shortDemo: await runDemo(run, make("demo"), "--steps", "3", ...SMALL),
      ...(whole ? { demo: await runDemo(run, make("demo")) } : {}),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Differences from the record, one a line. Metrics that are not recorded count as new, not as differences.
 * @returns {string[]}
 */
export function compareBits(recorded, computed, path = []) {
  if (typeof recorded !== "object")
    return Object.is(recorded, computed)
      ? []
      : [`${path.join(" ")}: expected ${recorded}, received ${computed ?? "nothing"}`];
  return Object.keys(recorded).flatMap((key) => compareBits(recorded[key], computed?.[key], [...path, key]));
}

async function main() {
  const { values } = parseArgs({
    options: {
      kernel: { type: "string", multiple: true },
      demo: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
    },
  });
  for (const kernel of values.kernel ?? usableKernels) {
    const name = nameRecord(kernel);
    const records = readRecords();
    const { platform, demo, ...recorded } = records[name] ?? {};
    if (!values.write && !records[name]) {
      console.log(`${name}: nothing is recorded; record it with --write`);
      process.exitCode ||= 2;
      continue;
    }
    const computed = await computeBits(kernel, { whole: values.demo });
    if (values.write) {
      // A recorded demo stays until the demo runs again: it takes minutes.
      records[name] = { platform: describePlatform(), ...computed, ...(values.demo ? {} : demo && { demo }) };
      writeFileSync(recordFile, `${JSON.stringify(records, null, 2)}\n`);
      console.log(`${name}: recorded`);
      continue;
    }
    const differences = compareBits(values.demo ? { ...recorded, demo } : recorded, computed);
    console.log(`${name}: ${differences.length === 0 ? "the recorded bits" : `${differences.length} differences`}`);
    for (const difference of differences) console.log(`  ${difference}`);
    if (differences.length > 0) {
      console.log(`  recorded with ${JSON.stringify(platform)}, computed with ${JSON.stringify(describePlatform())}`);
      process.exitCode = 1;
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
