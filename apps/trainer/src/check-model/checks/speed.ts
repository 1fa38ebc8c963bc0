import type { TrainSequence } from "@cria/core";
import { peakMemory } from "@cria/core/internal";
import { readGguf } from "@cria/engine";
import { trainConfigSchema } from "@cria/trainer";
import { checkConfig, estimateMemory, loadConfiguredModel, readModelShape } from "@cria/trainer/internal";
import { formatBytes } from "../../terminal/format-bytes.js";
import { type Finding, fine, judge, other } from "../finding.js";
import type { CheckContext, ModelCheck } from "../model-check.js";
import { samplePrompts } from "../sample-text.js";
import { weightedSum } from "../slopes.js";

const ROLLOUTS = "speed of rollouts";
const STEP = "speed of a step";
const MEMORY = "memory";

const CONVERSATIONS = 8;
const PROMPT = 30;
const DELTA = 10;
/** Tokens sampled in each of two turns. */
const SAMPLED = 12;
const CONTEXT = PROMPT + DELTA + 2 * SAMPLED;
/** Conversations of the step. */
const TRAINED = 6;
/** Largest ratio of the process's memory to doctor's estimate; tiny models may exceed it by a fixed number of bytes. */
const MEMORY_BOUND = 1.15;
const MEMORY_SLACK = 100e6;

/**
 * Takes one small step like `cria train`, in a separate process, and compares its memory with the estimate of `cria
 * doctor` for such a config.
 */
export const speedCheck: ModelCheck = {
  name: "speed",
  needsLora: true,
  seconds: 40,
  async run(context) {
    context.begin(ROLLOUTS);
    const config = makeConfig(context);
    const items = estimateMemory(readModelShape(await readGguf(context.path)), config);
    const model = await loadConfiguredModel(config, context.folder, { device: context.device });
    try {
      const started = performance.now();
      const conversations = await Promise.all(
        samplePrompts(model, CONVERSATIONS, PROMPT).map(async (prompt, i) => {
          const sequence = model.createSequence();
          const [delta] = samplePrompts(model, 1, DELTA);
          const options = { maxTokens: SAMPLED, stopTokens: [], seed: i };
          const first = await sequence.generate(prompt, options);
          const second = await sequence.generate(delta!, options);
          sequence.dispose();
          return [...prompt, ...first.tokenIds, ...delta!, ...second.tokenIds];
        }),
      );
      const sampled = 2 * SAMPLED * CONVERSATIONS;
      const rollouts = describeSpeed(sampled, started);
      context.advance(0.4);
      context.begin(STEP);
      const batch = conversations.slice(0, TRAINED).map(toTrained);
      const began = performance.now();
      const { evaluatedTokens } = await model.train(batch, weightedSum, { learningRate: 1e-6 });
      const step = describeSpeed(evaluatedTokens, began);
      context.begin(MEMORY);
      return [
        fine(ROLLOUTS, `${rollouts} sampled tokens a second, ${CONVERSATIONS} conversations of two turns at once`),
        fine(STEP, `${step} tokens a second, forward and backward, with an adapter of rank 8`),
        judgeMemory(
          peakMemory(),
          items.reduce((sum, { bytes }) => sum + bytes, 0),
          context.device,
        ),
      ];
    } finally {
      await model.dispose();
    }
  },
};

/** The config to measure. */
function makeConfig({ path, threads, device }: CheckContext) {
  const raw = {
    actor_rollout_ref: {
      model: { path, lora_rank: 8, lora_alpha: 16 },
      rollout: { prompt_length: PROMPT, response_length: CONTEXT - PROMPT, max_num_seqs: CONVERSATIONS },
      actor: { ppo_max_token_len: TRAINED * CONTEXT },
    },
    data: { train_files: "none.jsonl", max_prompt_length: PROMPT, max_response_length: CONTEXT - PROMPT },
    trainer: { threads, device },
  };
  return checkConfig(trainConfigSchema, raw, "check-model");
}

function toTrained(tokenIds: number[]): TrainSequence {
  const lossMask = tokenIds.map((_, t) => (t >= PROMPT ? 1 : 0));
  return { tokenIds, lossMask, columns: { weights: tokenIds.map(() => 1 / tokenIds.length) } };
}

const describeSpeed = (tokens: number, started: number): string =>
  ((1000 * tokens) / (performance.now() - started)).toFixed(1);

/** Compares the process's peak with the estimate, in bytes; on a GPU the model is in another memory. */
export function judgeMemory(measured: number, estimated: number, device: string): Finding {
  if (device !== "cpu") {
    const found = `${formatBytes(measured)} of the host at the peak, the GPU's libraries included; doctor estimates ${formatBytes(estimated)} for the model`;
    return other("not checked", MEMORY, found, "the GPU's own tool (nvidia-smi) shows its memory");
  }
  const share = measured / estimated;
  const found = `${formatBytes(measured)} at the peak, ${share.toFixed(2)} times what doctor estimates (${formatBytes(estimated)})`;
  return judge(
    MEMORY,
    share <= MEMORY_BOUND || measured - estimated <= MEMORY_SLACK,
    found,
    "leave that much more memory free than doctor says; report this",
  );
}
