/**
 * Cost of a bus without any gain: the steps of one training in this process, and the same steps done by one worker of
 * this machine for a coordinator that only coordinates. Both trainings take the same steps in turn, and must compute
 * the same bits.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { runTrainingStep, type StepMetrics, type Training } from "cria";
import { median } from "../../measure.js";
import { getModelFile } from "../../models/index.js";
import type { Row } from "../../row.js";
import { THREADS } from "../../settings.js";
import { ONE_WORKER_CASE } from "./cases.js";
import { Crew, openTrainingOf, removeFolder, writeEnvironment } from "./trainings.js";

const SHAPE = { prompts: 4, samples: 4, tokens: 64 };
/** Tokens of a micro-batch; null: as the trainer chooses. */
const MICRO_BATCHES = [null, 2048] as const;
type MicroBatch = (typeof MICRO_BATCHES)[number];
/** Rounds of each micro-batch, after a first step that is not counted. */
const ROUNDS = 2;
/** More than the same step without a bus. */
const TARGET = 0.05;

/** Parts of a step; `rest`: rewards, advantages, and the coordinator's work between them. */
const parts = ["gen", "old_log_prob", "update_actor", "publish", "rest"] as const;
type Part = (typeof parts)[number];

interface Step {
  seconds: number;
  parts: Record<Part, number>;
  /** That this process used, in the mean. */
  cores: number;
  tokens: string;
  /** Gradients of workers. */
  gradientBytes: number;
}

interface Pair {
  microBatch: MicroBatch;
  alone: Step;
  shared: Step;
}

/** Each kind of tokens has another reward, so that every conversation teaches something. */
const reward = "export const computeScore = (source, text) => [...text].filter((c) => c < 'n').length / text.length;\n";
const words = "one two three four";

export async function measureOneWorker(log: (text: string) => void): Promise<Row[]> {
  const model = await getModelFile("qwen2.5-0.5b", "Q8_0", log);
  const rows = Array.from({ length: SHAPE.prompts }, (_, i) => ({
    data_source: "one-worker",
    prompt: [{ role: "user", content: `${i}: ${words}` }],
    reward_model: { style: "rule", ground_truth: "" },
  }));
  const folder = await writeEnvironment(makeConfig(model), {
    "reward.mjs": reward,
    "rows.jsonl": rows.map((row) => `${JSON.stringify(row)}\n`).join(""),
  });
  const crew = await Crew.open();
  const sessions: Training[] = [];
  try {
    const alone = await openTrainingOf(folder, []);
    sessions.push(alone);
    crew.add({ id: "worker", folder, modelDir: dirname(model), threads: THREADS });
    const shared = await openTrainingOf(folder, ["cluster.wait_for_workers=1"], crew.bus);
    sessions.push(shared);
    await crew.ready(shared);
    const pairs: Pair[] = [];
    for (const [index, microBatch] of [null, ...repeat(MICRO_BATCHES, ROUNDS)].entries()) {
      // Alternates, so that neither always comes second.
      const order = index % 2 === 0 ? [alone, shared] : [shared, alone];
      const steps = new Map<Training, Step>();
      for (const session of order) steps.set(session, await takeStep(session, index + 1, microBatch));
      const pair = { microBatch, alone: steps.get(alone)!, shared: steps.get(shared)! };
      if (pair.alone.tokens !== pair.shared.tokens) throw new Error("the worker's conversations are others");
      log(describe(pair));
      if (index > 0) pairs.push(pair);
    }
    await checkAdapters(sessions, folder);
    return MICRO_BATCHES.flatMap((microBatch) => makeRows(pairs, microBatch));
  } finally {
    await Promise.all(sessions.map((session) => session.dispose()));
    await crew.close();
    await removeFolder(folder);
  }
}

const repeat = <T>(values: readonly T[], times: number): T[] => Array.from({ length: times }, () => values).flat();

async function takeStep(session: Training, step: number, microBatch: MicroBatch): Promise<Step> {
  const { settings: given } = session;
  const settings = { ...given, updates: { ...given.updates, microBatchTokens: microBatch } };
  const cpu = process.cpuUsage();
  const started = performance.now();
  const rows = session.trainRows.slice(0, SHAPE.prompts);
  const { trajectories, metrics } = await runTrainingStep({ ...session, settings }, { rows, step, epoch: 0 });
  const seconds = (performance.now() - started) / 1e3;
  const { user, system } = process.cpuUsage(cpu);
  checkPlace(session, metrics);
  return {
    seconds,
    parts: takeApart(metrics, seconds),
    cores: (user + system) / 1e6 / seconds,
    tokens: trajectories.map(({ tokenIds }) => tokenIds.join()).join("\n"),
    gradientBytes: metrics["cluster/gradient_bytes"] ?? 0,
  };
}

function takeApart(metrics: StepMetrics, seconds: number): Step["parts"] {
  const [gen, old_log_prob, update_actor] = [...parts.slice(0, 3)].map((part) => metrics[`timing_s/${part}`] ?? 0);
  const publish = metrics["cluster/policy_seconds"] ?? 0;
  const known = { gen: gen!, old_log_prob: old_log_prob!, update_actor: update_actor!, publish };
  return { ...known, rest: seconds - Object.values(known).reduce((sum, value) => sum + value, 0) };
}

function checkPlace({ coordination }: Training, metrics: StepMetrics): void {
  const [here, elsewhere] = [metrics["cluster/jobs_here"] ?? 0, metrics["cluster/jobs_elsewhere"] ?? 0];
  if (coordination && (here > 0 || elsewhere === 0))
    throw new Error(`the worker did ${elsewhere} jobs, the coordinator ${here}`);
}

/** @throws Error when the trainings differ: they would not be comparable. */
async function checkAdapters(sessions: readonly Training[], folder: string): Promise<void> {
  const hashes = await Promise.all(
    sessions.map(async ({ policy }, i) => {
      const path = join(folder, `adapter-${i}.gguf`);
      await policy.engine.saveAdapter(path);
      return createHash("sha256")
        .update(await readFile(path))
        .digest("hex");
    }),
  );
  if (new Set(hashes).size > 1) throw new Error(`the worker's training has another adapter: ${hashes.join(", ")}`);
}

const nameMicroBatch = (microBatch: MicroBatch) =>
  microBatch === null ? "default micro-batches" : `micro-batches of ${microBatch} tokens`;

function describe({ microBatch, alone, shared }: Pair): string {
  const tell = ({ seconds, parts: of, cores }: Step) =>
    `${seconds.toFixed(2)} s (${parts.map((part) => `${part} ${of[part].toFixed(2)}`).join(", ")}; ${cores.toFixed(2)} cores here)`;
  const overhead = (100 * (shared.seconds / alone.seconds - 1)).toFixed(1);
  const megabytes = (shared.gradientBytes / 1e6).toFixed(0);
  return `${nameMicroBatch(microBatch)}: alone ${tell(alone)}; one worker ${tell(shared)}; ${megabytes} MB of gradients; ${overhead} %`;
}

function makeRows(pairs: readonly Pair[], microBatch: MicroBatch): Row[] {
  const chosen = pairs.filter((pair) => pair.microBatch === microBatch);
  const middle = (side: "alone" | "shared", pick: (step: Step) => number) =>
    median(chosen.map((pair) => pick(pair[side])));
  const compare = (metric: string, pick: (step: Step) => number): Row => {
    const alone = middle("alone", pick);
    return {
      case: ONE_WORKER_CASE,
      metric: `${metric}, ${nameMicroBatch(microBatch)}`,
      ours: middle("shared", pick),
      // Nothing is published without a bus.
      peers: alone > 0 ? { "without a bus": alone } : {},
      target: null,
      met: null,
    };
  };
  const whole = compare("seconds per step", ({ seconds }) => seconds);
  return [
    {
      ...whole,
      target: `at most ${100 * TARGET} % more than without a bus`,
      met: whole.ours <= (1 + TARGET) * whole.peers["without a bus"]!,
    },
    ...parts.map((part) => compare(`seconds of ${part}`, (step) => step.parts[part])),
    compare("cores that the process with the trainer uses", ({ cores }) => cores),
  ];
}

function makeConfig(model: string) {
  const { prompts, samples, tokens } = SHAPE;
  return {
    actor_rollout_ref: {
      model: { path: model, lora_rank: 16, lora_alpha: 32 },
      actor: { optim: { lr: 1e-5 }, ppo_mini_batch_size: prompts },
      rollout: { n: samples, prompt_length: 64, response_length: tokens, max_model_len: 64 + tokens, max_num_seqs: 16 },
    },
    data: { train_files: "rows.jsonl", train_batch_size: prompts, max_prompt_length: 64, max_response_length: tokens },
    custom_reward_function: { path: "reward.mjs" },
    // Audits would be computed twice: a share of them is chosen.
    cluster: { take_part: false, audit: 0 },
    trainer: { threads: THREADS, device: "cpu", total_training_steps: 1000 },
  };
}
