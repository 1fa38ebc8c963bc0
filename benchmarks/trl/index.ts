/**
 * GRPO on a published model compared with TRL's GRPOTrainer: the steps of examples/tool-choice from the same adapter,
 * rows, prompt text, tools and rewards. peers/trl/README.md lists the settings that were made equal, and the remaining
 * differences. Prompts and logprobs are compared before anything is timed. Each run has a separate process, which gives
 * its peak of memory.
 */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { BenchmarkOptions } from "../benchmark.js";
import { median } from "../measure.js";
import { TrlPeer } from "../peers/trl/trl-peer.js";
import { findRealModel, writeRealModel } from "../real-model.js";
import type { Measured, Row } from "../row.js";
import { THREADS } from "../settings.js";
import { toolChoiceFolder as example, toolChoiceByGrpo } from "../tool-choice.js";
import { type ExampleRow, loadTools, openAnswers, readRows } from "./answers.js";
import type { OurAnswers, OurRequest } from "./requests.js";

const config = join(example, "config.yaml");

interface Size {
  title: string;
  /** Rows and samples of a step. */
  rows: number;
  samples: number;
  steps: number;
  demonstrationSteps: number;
  seeds: number[];
  /** Rows of each held-out file; 0: success is not measured. */
  heldOut: number;
  models: ("F32" | "Q8_0")[];
  /** TRL's settings of `bf16`. */
  bfloat16: boolean[];
  threads: number[];
  isJudged: boolean;
}

/** Half an hour: a step's time and memory, without what it learns. */
const speed: Size = {
  title: "3 GRPO steps of examples/tool-choice, SmolLM2-135M-Instruct, 8 x 8 samples",
  ...{ rows: 8, samples: 8, steps: 3, demonstrationSteps: 25, seeds: [1], heldOut: 0 },
  ...{ models: ["F32", "Q8_0"], bfloat16: [false, true], threads: [THREADS], isJudged: true },
};

/** Two or three hours: what equal steps learn, by a quarter of the samples and without bfloat16. */
const learned: Size = {
  title: "40 GRPO steps of examples/tool-choice, SmolLM2-135M-Instruct, 4 x 4 samples",
  ...{ rows: 4, samples: 4, steps: 40, demonstrationSteps: 40, seeds: [1, 2, 3], heldOut: 120 },
  ...{ models: ["F32", "Q8_0"], bfloat16: [false], threads: [...new Set([THREADS, 1])], isJudged: true },
};

/** A few minutes that check whether both sides run: no number is judged. */
const small: Size = {
  title: "2 small steps, to see that both sides run",
  ...{ rows: 2, samples: 4, steps: 2, demonstrationSteps: 2, seeds: [1], heldOut: 4 },
  ...{ models: ["F32"], bfloat16: [false, true], threads: [THREADS], isJudged: false },
};

const LEARNING_RATE = 1e-4;
const LORA = { rank: 16, alpha: 32 };
const TURNS = 4;
const limits = { turn: 48, response: 160, prompt: 192 };

export async function run(options: BenchmarkOptions): Promise<Measured> {
  const rows: Row[] = [];
  for (const size of [small, speed, learned])
    if (options.includes(size.title)) rows.push(...(await measure(size, options)));
  return { rows };
}

interface TrlStep {
  seconds: number;
  rollout: number;
  training: number;
  tokens: number;
  reward: number;
}

/** All steps of one side, of every seed. */
interface Taken {
  steps: (TrlStep & { scoring?: number })[];
  peakMemory: number;
  success: number[];
}

const openSide = (): Taken => ({ steps: [], peakMemory: 0, success: [] });

async function measure(size: Size, { log }: BenchmarkOptions): Promise<Row[]> {
  const { missingModel, realPython } = await findRealModel();
  if (missingModel) throw new Error(missingModel);
  const folder = await mkdtemp(join(tmpdir(), "cria-trl-"));
  try {
    const models = Object.fromEntries(
      await Promise.all(size.models.map(async (type) => [type, await writeRealModel(type)] as const)),
    );
    const trainRows = readRows("train.jsonl").slice(0, size.rows * size.steps);
    const values = join(folder, "start");
    log(`${size.demonstrationSteps} steps on demonstrations`);
    const start = await askOurs({
      do: "demonstrate",
      config: join(example, "sft.yaml"),
      changes: [
        ...[
          `model.path=${models.F32}`,
          `model.lora_rank=${LORA.rank}`,
          `model.lora_alpha=${LORA.alpha}`,
          `trainer.threads=${THREADS}`,
        ],
        ...[
          `trainer.total_training_steps=${size.demonstrationSteps}`,
          `trainer.output_path=${join(folder, "sft.gguf")}`,
        ],
        ...[
          `trainer.default_local_dir=${join(folder, "runs")}`,
          "trainer.logger=[file]",
          "trainer.resume_mode=disable",
        ],
      ],
      values,
    });
    const changesFor = (type: string, seed: number) => [
      ...describeOurs(size, seed, folder),
      ...[`actor_rollout_ref.model.path=${models[type]}`, `trainer.threads=${THREADS}`],
    ];
    const judge = async (type: string, seed: number, adapter: string, given: string | null) =>
      size.heldOut === 0
        ? null
        : (await askOurs({ do: "judge", config, changes: changesFor(type, seed), values: given, adapter })).success;

    const trl = async (seed: number, bf16: boolean, threads: number, steps: number) => {
      const peer = new TrlPeer(realPython, threads, await openAnswers(trainRows));
      try {
        const versions = await peer.ask<{ trl: string; torch: string }>({
          ...{ do: "load", path: models.F32, adapter: values, lora: LORA, threads, bfloat16: bf16 },
        });
        const settings = describeTrl(size, seed, bf16, steps);
        const tools = (await loadTools()).map(({ schema }) => schema.function.name);
        const rows = trainRows.map(({ prompt }) => prompt);
        const taken = await peer.ask<{ steps: TrlStep[]; peakMemory: number }>({
          ...{ do: "train", rows, tools, settings, output_dir: join(folder, "trl"), turns: TURNS },
        });
        const trained = join(folder, `trl-${seed}-${bf16}`);
        await peer.ask({ do: "save", folder: trained, index: start.index });
        return { ...versions, ...taken, trained };
      } finally {
        peer.close();
      }
    };

    const sides: Record<string, Taken> = {};
    const add = (side: string, { steps, peakMemory }: Pick<Taken, "steps" | "peakMemory">, success: number | null) => {
      sides[side] ??= openSide();
      sides[side].steps.push(...steps);
      sides[side].peakMemory = Math.max(sides[side].peakMemory, peakMemory);
      if (success !== null) sides[side].success.push(success);
    };
    const tried: Record<string, number> = {};
    let threads = size.threads[0]!;
    if (size.threads.length > 1) {
      for (const count of size.threads) tried[`threads ${count}`] = (await trl(1, false, count, 1)).steps[0]!.seconds;
      threads = size.threads.reduce((a, b) => (tried[`threads ${a}`]! <= tried[`threads ${b}`]! ? a : b));
    }
    let name = "TRL";
    let apart = 0;
    for (const seed of size.seeds) {
      for (const type of size.models) {
        const adapter = join(folder, `ours-${type}-${seed}.gguf`);
        const changes = [...changesFor(type, seed), `actor_rollout_ref.model.lora_adapter_path=${start.adapter}`];
        const taken = await askOurs({ do: "train", config, changes, steps: size.steps, adapter });
        if (type === "F32" && seed === size.seeds[0])
          apart = await compareWithPeer(realPython, taken, trainRows, values, models.F32!);
        add(`ours, ${type}`, taken, await judge(type, seed, adapter, null));
      }
      for (const bf16 of size.bfloat16) {
        const taken = await trl(seed, bf16, threads, size.steps);
        name = `TRL ${taken.trl}, PyTorch ${taken.torch.split("+")[0]}`;
        add(bf16 ? "TRL, bfloat16" : "TRL", taken, await judge("F32", seed, `${taken.trained}.gguf`, taken.trained));
      }
    }
    log(`logprobs of our sampler and transformers' differ by at most ${apart.toExponential(1)}`);
    return makeRows(size, sides, name, { used: `threads ${threads}`, tried });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Our settings that differ from the example's. */
const describeOurs = (size: Size, seed: number, folder: string) => [
  ...toolChoiceByGrpo,
  ...[`actor_rollout_ref.model.lora_rank=${LORA.rank}`, `actor_rollout_ref.model.lora_alpha=${LORA.alpha}`],
  ...[`actor_rollout_ref.actor.optim.lr=${LEARNING_RATE}`, "actor_rollout_ref.actor.optim.lr_warmup_steps=0"],
  ...[`actor_rollout_ref.actor.ppo_mini_batch_size=${size.rows}`, `data.train_batch_size=${size.rows}`],
  ...["actor_rollout_ref.actor.clip_ratio_c=1e9", "actor_rollout_ref.actor.loss_agg_mode=token-mean"],
  ...[`actor_rollout_ref.rollout.n=${size.samples}`, `actor_rollout_ref.rollout.seed=${seed}`, `data.seed=${seed}`],
  ...[`actor_rollout_ref.rollout.max_tokens_per_turn=${limits.turn}`, "data.shuffle=false"],
  ...[`actor_rollout_ref.rollout.multi_turn.max_assistant_turns=${TURNS}`],
  // Without a judgement no conversation earns anything: it is trained on nonetheless.
  `actor_rollout_ref.actor.skip_zero_advantage=${size.isJudged}`,
  // Answers of tools are never cut off.
  "actor_rollout_ref.rollout.multi_turn.max_tool_response_length=400",
  ...[`data.max_prompt_length=${limits.prompt}`, `data.max_response_length=${limits.response}`],
  ...(size.heldOut > 0 ? [`data.val_max_samples=${2 * size.heldOut}`] : []),
  ...[`trainer.default_local_dir=${join(folder, "runs")}`],
  ...["trainer.logger=[file]", "trainer.resume_mode=disable", `trainer.total_training_steps=${size.steps}`],
];

/** The same of TRL: peers/trl/README.md. */
const describeTrl = (size: Size, seed: number, bf16: boolean, steps: number) => ({
  ...{
    num_generations: size.samples,
    per_device_train_batch_size: size.samples,
    gradient_accumulation_steps: size.rows,
  },
  ...{ steps_per_generation: size.rows, num_iterations: 1, max_steps: steps, shuffle_dataset: false, seed, bf16 },
  ...{
    learning_rate: LEARNING_RATE,
    lr_scheduler_type: "constant",
    warmup_steps: 0,
    weight_decay: 0,
    max_grad_norm: 1,
  },
  ...{ adam_beta1: 0.9, adam_beta2: 0.999, adam_epsilon: 1e-8, gradient_checkpointing: false },
  ...{ loss_type: "dapo", epsilon: 0.2, beta: 0, scale_rewards: "group", mask_truncated_completions: false },
  ...{ temperature: 1, top_p: 1, top_k: 0, max_completion_length: limits.response },
  generation_kwargs: { max_new_tokens: limits.turn },
});

async function askOurs<R extends OurRequest>(request: R): Promise<OurAnswers[R["do"]]> {
  const script = join(import.meta.dirname, "ours.ts");
  const child = spawn(process.execPath, [...process.execArgv, script, JSON.stringify(request)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  const output = await text(child.stdout);
  const code = await ended;
  if (code !== 0) throw new Error(`our side ended with ${code} during "${request.do}":\n${output}`);
  return JSON.parse(output.trim().split("\n").at(-1)!) as OurAnswers[R["do"]];
}

/**
 * The peer's prompts and logprobs against our first rollouts, which the same weights made. Returns how far logprobs are
 * apart.
 */
async function compareWithPeer(
  python: string,
  { samples }: OurAnswers["train"],
  rows: readonly ExampleRow[],
  adapter: string,
  path: string,
): Promise<number> {
  const peer = new TrlPeer(python, 1, async () => "");
  try {
    await peer.ask({ do: "load", path, adapter, lora: LORA, threads: 1 });
    const asked = rows.slice(0, samples.length).map(({ prompt }) => prompt);
    const { tokens } = await peer.ask<{ tokens: number[][] }>({ do: "prompts", rows: asked });
    for (const [i, sample] of samples.entries())
      if (sample.tokens.slice(0, sample.promptLength).join() !== tokens[i]!.join())
        throw new Error(`TRL's prompt of row ${i} has other tokens`);
    let worst = 0;
    for (const sample of samples) {
      const { logprobs } = await peer.ask<{ logprobs: number[] }>({ do: "score", tokens: sample.tokens });
      for (let t = 1; t < sample.tokens.length; t++)
        if (sample.mask[t]) worst = Math.max(worst, Math.abs(logprobs[t - 1]! - sample.logprobs[t]!));
    }
    if (worst > 2e-3) throw new Error(`logprobs differ from transformers' by ${worst}`);
    return worst;
  } finally {
    peer.close();
  }
}

const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
/** Standard error of a mean; 0 of a single value. */
const errorOf = (values: readonly number[]) => {
  const center = mean(values);
  const squares = values.reduce((sum, value) => sum + (value - center) ** 2, 0);
  return values.length < 2 ? 0 : Math.sqrt(squares / (values.length - 1) / values.length);
};

function makeRows(
  size: Size,
  sides: Record<string, Taken>,
  name: string,
  used: NonNullable<Row["settings"]>[string],
): Row[] {
  const peers = Object.fromEntries(
    size.bfloat16.map((bf16) => (bf16 ? [`${name}, bfloat16`, sides["TRL, bfloat16"]!] : [name, sides.TRL!])),
  );
  const settings = Object.keys(used.tried).length > 0 ? { settings: { [name]: used } } : {};
  const rows: Row[] = [];
  for (const type of size.models) {
    const ours = sides[`ours, ${type}`]!;
    const add = (
      metric: string,
      pick: (side: Taken) => number,
      target?: [string, (ours: number, theirs: number[]) => boolean],
    ) => {
      const theirs = Object.fromEntries(Object.entries(peers).map(([peer, side]) => [peer, pick(side)]));
      const isTarget = target !== undefined && size.isJudged;
      rows.push({
        ...{ case: size.title, metric: `${metric}, our base in ${type}`, ours: pick(ours), peers: theirs, ...settings },
        target: isTarget ? target[0] : null,
        met: isTarget ? target[1](pick(ours), Object.values(theirs)) : null,
      });
    };
    const of = (pick: (step: Taken["steps"][number]) => number) => (side: Taken) => median(side.steps.map(pick));
    const times = type === "F32" ? 3 : 5;
    add(
      "seconds a step, median",
      of((step) => step.seconds),
      [`TRL's faster one takes at least ${times} times as long`, (own, theirs) => Math.min(...theirs) >= times * own],
    );
    add(
      "seconds of rollout, median",
      of((step) => step.rollout),
    );
    add(
      "seconds of scoring and training, median",
      of((step) => (step.scoring ?? 0) + step.training),
    );
    add(
      "sampled tokens per second of rollout, median",
      of((step) => step.tokens / step.rollout),
    );
    add("peak memory, MiB", (side) => side.peakMemory / 2 ** 20, [
      "at most half of TRL's smaller one",
      (own, theirs) => own <= Math.min(...theirs) / 2,
    ]);
    if (size.heldOut === 0) continue;
    const noise = 2 * Math.hypot(errorOf(ours.success), errorOf(sides.TRL!.success));
    add(`held-out success after ${size.steps} steps, mean of ${size.seeds.length}`, (side) => mean(side.success), [
      "within two standard errors of TRL's",
      (own, [theirs]) => Math.abs(own - theirs!) <= noise,
    ]);
  }
  return rows;
}
