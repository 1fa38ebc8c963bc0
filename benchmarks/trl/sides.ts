/** The same GRPO steps by ours and by TRL, from one adapter that ours makes of demonstrations: peers/trl/README.md. */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { TrlPeer } from "../peers/trl/trl-peer.js";
import { findRealModel, writeRealModel } from "../real-model.js";
import { THREADS } from "../settings.js";
import { toolChoiceFolder as example, toolChoiceByGrpo } from "../tool-choice.js";
import { type ExampleRow, loadTools, openAnswers, readRows } from "./answers.js";
import type { OurAnswers, OurRequest } from "./requests.js";

const config = join(example, "config.yaml");

export interface Size {
  /** Rows and samples of a step. */
  rows: number;
  samples: number;
  steps: number;
  demonstrationSteps: number;
  /** Rows of each held-out file. */
  heldOut: number;
  isJudged: boolean;
  /** Threads of ours. */
  threads?: number;
}

export type BaseType = "F32" | "Q8_0";

export interface Step {
  seconds: number;
  rollout: number;
  scoring?: number;
  training: number;
  tokens: number;
  reward: number;
}

export interface Taken {
  steps: Step[];
  peakMemory: number;
  /** The adapter, for `judge`. */
  trained: Trained;
}

/** An adapter's file; `values`: the folder of values that it is made of first. */
interface Trained {
  adapter: string;
  values: string | null;
}

const LEARNING_RATE = 1e-4;
const LORA = { rank: 16, alpha: 32 };
const TURNS = 4;
const limits = { turn: 48, response: 160, prompt: 192 };

/** Trains the adapter from which both sides start, in a folder of its own. */
export async function openSides(size: Size) {
  const { missingModel, realPython } = await findRealModel();
  if (missingModel) throw new Error(missingModel);
  const { threads: ourThreads = THREADS } = size;
  const folder = await mkdtemp(join(tmpdir(), "cria-trl-"));
  const close = () => rm(folder, { recursive: true, force: true });
  try {
    const models = { F32: await writeRealModel("F32"), Q8_0: await writeRealModel("Q8_0") };
    const trainRows = readRows("train.jsonl").slice(0, size.rows * size.steps);
    const values = join(folder, "start");
    const start = await askOurs({
      ...{ do: "demonstrate", config: join(example, "sft.yaml"), values },
      changes: [
        ...[`model.path=${models.F32}`, `model.lora_rank=${LORA.rank}`, `model.lora_alpha=${LORA.alpha}`],
        ...[`trainer.threads=${ourThreads}`, `trainer.total_training_steps=${size.demonstrationSteps}`],
        ...[`trainer.output_path=${join(folder, "sft.gguf")}`, `trainer.default_local_dir=${join(folder, "runs")}`],
        ...["trainer.logger=[file]", "trainer.resume_mode=disable"],
      ],
    });
    const changesFor = (type: BaseType, seed: number) => [
      ...describeOurs(size, seed, folder),
      ...[`actor_rollout_ref.model.path=${models[type]}`, `trainer.threads=${ourThreads}`],
    ];
    let apart = 0;

    /** Ours. The first steps of F32 are compared with the peer's prompts and logprobs. */
    const trainOurs = async (type: BaseType, seed: number): Promise<Taken> => {
      const adapter = join(folder, `ours-${type}-${seed}.gguf`);
      const changes = [...changesFor(type, seed), `actor_rollout_ref.model.lora_adapter_path=${start.adapter}`];
      const taken = await askOurs({ do: "train", config, changes, steps: size.steps, adapter });
      if (type === "F32" && apart === 0)
        apart = await compareWithPeer(realPython, taken, trainRows, values, models.F32);
      return { ...taken, trained: { adapter, values: null } };
    };

    const trainTrl = async (seed: number, bf16: boolean, threads: number, steps = size.steps) => {
      const peer = new TrlPeer(realPython, threads, await openAnswers(trainRows));
      try {
        const { trl, torch } = await peer.ask<{ trl: string; torch: string }>({
          ...{ do: "load", path: models.F32, adapter: values, lora: LORA, threads, bfloat16: bf16 },
        });
        const settings = describeTrl(size, seed, bf16, steps);
        const tools = (await loadTools()).map(({ schema }) => schema.function.name);
        const rows = trainRows.map(({ prompt }) => prompt);
        const taken = await peer.ask<{ steps: Step[]; peakMemory: number }>({
          ...{ do: "train", rows, tools, settings, output_dir: join(folder, "trl"), turns: TURNS },
        });
        const trained = join(folder, `trl-${seed}-${bf16}`);
        await peer.ask({ do: "save", folder: trained, index: start.index });
        const name = `TRL ${trl}, PyTorch ${torch.split("+")[0]}`;
        return { ...taken, name, trained: { adapter: `${trained}.gguf`, values: trained } };
      } finally {
        peer.close();
      }
    };

    /** Success on the held-out rows, with the likeliest tokens over a base of this type. */
    const judge = async ({ adapter, values }: Trained, type: BaseType, seed: number) =>
      (await askOurs({ do: "judge", config, changes: changesFor(type, seed), values, adapter })).success;

    return {
      ...{ trainOurs, trainTrl, judge, close },
      /** The adapter from which both sides start. */
      start: { adapter: start.adapter, values: null } satisfies Trained,
      /** Largest distance of our sampler's logprobs from those of transformers; 0 before `trainOurs`. */
      apart: () => apart,
    };
  } catch (error) {
    await close();
    throw error;
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
