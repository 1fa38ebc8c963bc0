import type { Trajectory } from "@cria/core";
import { type ChecksOf, checkOptions, optionChecks, showContent } from "@cria/core/internal";
import {
  CheckpointStore,
  countSteps,
  loadConfig,
  openTraining,
  type Report,
  RunFolder,
  runTraining,
  type Training,
  trainConfigSchema,
  validate,
} from "@cria/trainer";
import { dumpTrajectories, readSuccess, saveDump, writeAtomically } from "@cria/trainer/internal";
import { demoConfigPath } from "../assets/embedded-policy.js";
import { colors as pc } from "../terminal/colors.js";
import { formatCount, formatSeconds, Progress } from "../terminal/progress.js";
import { showEvents } from "../terminal/show-events.js";
import { drawBar, drawSparkline, drawSvgChart } from "./draw-chart.js";

export interface DemoOptions {
  seed: number;
  steps: number | null;
  /** Further key.path=value for the example's config. */
  overrides?: readonly string[];
  /** Parent folder of runs/demo. */
  cwd: string;
  silent: boolean;
  signal?: AbortSignal;
}

const { text, flag, whole, signal } = optionChecks;

const demoChecks: ChecksOf<Required<DemoOptions>> = {
  seed: whole,
  steps: [(value) => value === null || Number.isInteger(value), "a whole number, or null"],
  overrides: [Array.isArray, "a list of key.path=value"],
  cwd: text,
  silent: flag,
  signal,
};

/** Steps between checkpoints. */
const SAVE_FREQ = 5;

interface Success {
  sampled: number;
  greedy: number;
}

/** The content of runs/demo/summary.json. */
export interface DemoSummary {
  model: string;
  seed: number;
  steps: number;
  before: Success;
  after: Success;
  seconds: { total: number; rollout: number; train: number; eval: number };
  tokens_per_second: { rollout: number; train: number };
}

/** Implements `runDemo` of when-called.ts. */
export async function runDemo(options: DemoOptions): Promise<DemoSummary> {
  checkOptions("runDemo", options, demoChecks);
  const started = performance.now();
  const overrides = [
    `actor_rollout_ref.rollout.seed=${options.seed}`,
    `data.seed=${options.seed}`,
    "trainer.val_before_train=false",
    `trainer.save_freq=${SAVE_FREQ}`,
    // Needed by `cria view`.
    "trainer.rollout_data_detail=full",
    ...(options.overrides ?? []),
  ];
  if (options.steps !== null) overrides.push(`trainer.total_training_steps=${options.steps}`);
  const { values: config, folder } = loadConfig(trainConfigSchema, demoConfigPath, overrides);
  const training = await openTraining(config, folder, {
    signal: options.signal,
    report: showEvents({ silent: options.silent }),
  });
  const say = (text: string) => {
    if (!options.silent) console.log(text);
  };
  try {
    const run = await RunFolder.create(`${options.cwd}/runs/demo`);
    await run.clear();
    await run.writeConfig(config);
    const { info } = training.policy.engine;
    say(
      `${pc.bold("cria demo")}: ${info.name}, ${formatCount(info.parameterCount)} parameters, LoRA ${formatCount(info.trainableParameterCount)}; ${info.device}, ${info.threads} threads, seed ${options.seed}`,
    );

    const before = await measure(training, "before", options.silent);
    const history = await trainPolicy(training, run, folder, options.silent);
    const after = await measure(training, "after", options.silent);

    const total = (name: string) => history.reduce((sum, m) => sum + (m[name] ?? 0), 0);
    const rollout = total("timing_s/gen");
    const train = total("timing_s/old_log_prob") + total("timing_s/update_actor");
    const summary: DemoSummary = {
      model: config.actor_rollout_ref.model.path,
      seed: options.seed,
      steps: history.length,
      before: before.success,
      after: after.success,
      seconds: { total: (performance.now() - started) / 1000, rollout, train, eval: before.seconds + after.seconds },
      tokens_per_second: {
        rollout: total("engine/decode_tokens") / rollout,
        train: total("perf/total_num_tokens") / Math.max(1e-9, train),
      },
    };
    await run.writeJson("summary.json", summary);
    const validated = dumpTrajectories(training.policy.engine, training.environment, after.sampled, {
      step: history.length,
      rows: training.valRows,
      times: true,
    });
    await saveDump(run.file("validation/after.jsonl"), validated, []);
    const scores = history.map((m) => m["reward/score/mean"] ?? 0);
    await writeAtomically(run.file("success.svg"), drawDemoChart(scores, before.success, after.success));
    if (!options.silent) report(summary, scores, after.sampled, run.path);
    return summary;
  } finally {
    await training.dispose();
  }
}

/** Takes the steps without the validations, which the demo replaces. Returns the metrics of the steps. */
async function trainPolicy(training: Training, folder: RunFolder, configFolder: string, silent: boolean) {
  const total = countSteps(training.settings, training.trainRows.length);
  const progress = new Progress({ label: "train   ", total, silent });
  const report: Report = (event) => {
    if (event.type !== "step") return;
    const { step, metrics: m } = event;
    progress.update(
      step,
      `reward ${m["critic/rewards/mean"]?.toFixed(2)} · success ${m["reward/score/mean"]?.toFixed(2)} · ${formatCount(m["perf/throughput"]!)} tok/s`,
    );
  };
  const { steps } = await runTraining(
    { ...training, valRows: [] },
    // Checkpoints for replays: `cria replay runs/demo --step 30` then repeats only a few steps.
    { folder, checkpoints: new CheckpointStore(folder.path), configFolder, report },
  );
  progress.finish();
  return steps;
}

async function measure(
  training: Training,
  label: string,
  silent: boolean,
): Promise<{ success: Success; seconds: number; sampled: Trajectory[] }> {
  const rows = training.valRows.length;
  const progress = new Progress({ label: label.padEnd(8), total: 2 * rows, silent });
  let done = 0;
  const onTrajectory = () => progress.update(++done);
  const sampled = await validate(training, { temperature: 1, step: 0, onTrajectory });
  const greedy = await validate(training, { temperature: 0, step: 0, onTrajectory });
  const success = {
    sampled: readSuccess(sampled, "the demo's validation"),
    greedy: readSuccess(greedy, "the demo's validation"),
  };
  progress.finish(
    `success ${pc.bold(success.sampled.toFixed(3))} sampled, ${pc.bold(success.greedy.toFixed(3))} greedy`,
  );
  return { success, seconds: sampled.seconds + greedy.seconds, sampled: sampled.trajectories };
}

function drawDemoChart(scores: readonly number[], before: Success, after: Success): string {
  const ends = (key: keyof Success) => [
    { x: 0, y: before[key] },
    { x: scores.length, y: after[key] },
  ];
  return drawSvgChart("Calculator environment: success", [
    { name: "training, sampled", color: "#2563eb", points: scores.map((y, i) => ({ x: i + 1, y })) },
    { name: "held out, sampled", color: "#16a34a", points: ends("sampled") },
    { name: "held out, greedy", color: "#d97706", points: ends("greedy") },
  ]);
}

function report(summary: DemoSummary, scores: readonly number[], sampled: readonly Trajectory[], folder: string): void {
  const { before, after, seconds, tokens_per_second } = summary;
  console.log(`\n${pc.bold(`success on ${sampled.length} held-out problems`)}`);
  for (const key of ["sampled", "greedy"] as const) {
    console.log(`  ${key.padEnd(8)} before ${pc.red(drawBar(before[key], 20))} ${before[key].toFixed(3)}`);
    console.log(`  ${"".padEnd(8)} after  ${pc.green(drawBar(after[key], 20))} ${after[key].toFixed(3)}`);
  }
  console.log(`  training ${drawSparkline(scores)}`);
  const solved = sampled.find((t) => t.reward === 1 && t.numTurns > 2);
  if (solved) {
    console.log(`\n${pc.bold("one solved conversation")}`);
    for (const message of solved.messages.slice(1))
      console.log(`  ${pc.cyan(message.role.padEnd(9))} ${showContent(message.content).replace(/\n/g, " ")}`);
  }
  console.log(
    `\n${pc.bold("time")} ${formatSeconds(seconds.total)}: rollout ${seconds.rollout.toFixed(1)} s (${formatCount(tokens_per_second.rollout)} tok/s), training ${seconds.train.toFixed(1)} s (${formatCount(tokens_per_second.train)} tok/s), evaluation ${seconds.eval.toFixed(1)} s`,
  );
  console.log(`${pc.bold("run folder")} ${folder}: summary.json, metrics.jsonl, rollouts/, adapter.gguf, success.svg`);
  console.log(pc.bold("next"));
  const next = {
    "npx cria view": "why a conversation failed: curves, groups, conversations and tokens in the browser",
    "npx cria show runs/demo --worst 1": "the same in the terminal",
    "npx cria init my-task": "an environment of your own, with a tool, an interaction and rows to change",
  };
  for (const [command, what] of Object.entries(next)) console.log(`  ${command.padEnd(36)}${what}`);
}
