import { losses } from "@cria/algorithms";
import { defaultRolloutCorrection } from "@cria/algorithms/internal";
import type { LossFunction, PolicyEngine, TrainResult, TrainSequence } from "@cria/core";
import { describe, expect, it } from "vitest";
import { type Batch, makeBatch } from "./batch.js";
import { type UpdateOptions, updatePolicy } from "./update-policy.js";

const names = ["a", "b", "c", "d", "e", "f", "g", "h"];

/**
 * Makes a batch: eight prompts with two samples each; a sample has one prompt token and two sampled tokens, which
 * contain the prompt's number.
 */
function makeTinyBatch(responseLength = 10): Batch {
  const trajectories = names.flatMap((uid, i) =>
    [0, 1].map(() => ({ uid, tokenIds: Int32Array.of(i, i, i), responseMask: Uint8Array.of(0, 1, 1) })),
  );
  return makeBatch(trajectories, {
    advantages: trajectories.map((_, i) => Float32Array.of(0, i % 2 ? 1 : -1, i % 2 ? 1 : -1)),
    temperature: 1,
    responseLength,
  });
}

/** Updates a fake policy that only records its training data. */
async function update(options: Partial<UpdateOptions> = {}, loss = losses.ppo(), batch = makeTinyBatch()) {
  const steps: { prompts: string; loss: LossFunction; sequences: readonly TrainSequence[] }[] = [];
  const scoreless = (sequence: TrainSequence) => ({
    ...sequence,
    columns: { ...sequence.columns, oldLogprobs: new Float32Array(sequence.tokenIds.length) },
  });
  const engine = {
    score: async () => [],
    train: async (sequences: readonly TrainSequence[], compute: LossFunction) => {
      const prompts = sequences.map(({ tokenIds }) => names[tokenIds[0]!]).join("");
      steps.push({ prompts, loss: compute, sequences });
      return { metrics: {} } as TrainResult;
    },
  } as unknown as PolicyEngine;
  const score = async (sequences: readonly TrainSequence[]) =>
    sequences.map((sequence) => ({ oldLogprobs: scoreless(sequence).columns.oldLogprobs, refLogprobs: undefined }));
  const given = { seed: 1, step: 1, learningRate: 1, miniBatchSize: 2, ...options };
  await updatePolicy({ engine, score: score as never, scoreReference: async () => [] }, batch, loss, given);
  return steps;
}

const promptsOf = async (options: Partial<UpdateOptions>) => (await update(options)).map(({ prompts }) => prompts);

describe("the mini-batches of an update", () => {
  it("are others in each pass, each prompt once in a pass with all of its samples", async () => {
    const prompts = await promptsOf({ epochs: 3 });
    expect(prompts).toHaveLength(12);
    const passes = [0, 4, 8].map((start) => prompts.slice(start, start + 4));
    for (const pass of passes) expect([...pass.join("")].sort().join("")).toBe("aabbccddeeffgghh");
    expect(new Set(passes.map((pass) => pass.join(" "))).size).toBe(3);
  });

  it("are others in each step and with each seed, and the same again with the same", async () => {
    const first = await promptsOf({});
    expect(await promptsOf({})).toEqual(first);
    expect(await promptsOf({ step: 2 })).not.toEqual(first);
    expect(await promptsOf({ seed: 2 })).not.toEqual(first);
  });

  it("are in the batch's order without shuffle, in each pass", async () => {
    const order = ["aabb", "ccdd", "eeff", "gghh"];
    expect(await promptsOf({ shuffle: false, epochs: 2 })).toEqual([...order, ...order]);
  });
});

describe("lossScaleFactor", () => {
  /** Gradient of each token, for two sampled tokens with advantage -1 in a mini-batch of one sequence. */
  async function gradientOf(lossScaleFactor: number | null, responseLength: number) {
    const loss = { ...losses.ppo({ aggregation: "seq-mean-token-sum-norm" }), lossScaleFactor };
    const [step] = await update({ miniBatchSize: 1 }, loss, makeTinyBatch(responseLength));
    const column = (value: number) => new Float32Array(2).fill(value);
    const { dLogprobs } = step!.loss({
      logprobs: column(-1),
      entropy: column(1),
      offsets: Int32Array.of(0, 2),
      columns: { oldLogprobs: column(-1), advantages: column(-1) },
      totals: { tokens: 2, sequences: 1 },
    } as never);
    return dLogprobs[0];
  }

  it("is the longest response that the batch allows, unless the loss says it", async () => {
    // The update's own totals: two sequences in the mini-batch of one prompt.
    expect(await gradientOf(null, 10)).toBeCloseTo(1 / 10 / 2, 7);
    expect(await gradientOf(null, 40)).toBeCloseTo(1 / 40 / 2, 7);
    expect(await gradientOf(5, 40)).toBeCloseTo(1 / 5 / 2, 7);
  });
});

describe("the correction of an update", () => {
  const correction = { ...defaultRolloutCorrection, rolloutIs: "token" as const };

  it("weighs each token by the update's own logprobs", async () => {
    const [step] = await update({ miniBatchSize: 8, correction });
    const given = {
      logprobs: Float32Array.of(-1, -1),
      entropy: Float32Array.of(0, 0),
      offsets: Int32Array.of(0, 2),
      totals: { tokens: 2, sequences: 1 },
    };
    const evaluate = (more: object) =>
      step!.loss({ ...given, columns: { advantages: Float32Array.of(1, 1), ...more } } as never).dLogprobs;
    const rolloutLogprobs = Float32Array.of(-1.5, -9);
    const [plain, weighed] = [evaluate({}), evaluate({ rolloutLogprobs })];
    const ratios = Array.from(weighed, (gradient, t) => gradient / plain[t]!);
    expect(ratios[0]).toBeCloseTo(Math.exp(0.5), 5);
    expect(ratios[1]).toBeCloseTo(2, 5);
  });

  it.each<[string, Partial<UpdateOptions>]>([
    ["of sequences", { correction: { ...correction, rolloutIs: "sequence" } }],
    ["with a mean of 1", { correction: { ...correction, rolloutIsBatchNormalize: true } }],
    ["with a veto", { correction: { ...correction, rolloutTokenVetoThreshold: 1e-4 } }],
    ["of several optimizer steps", { correction, miniBatchSize: 2 }],
  ])("is refused: %s", async (_, options) => {
    await expect(update({ miniBatchSize: 8, ...options })).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "policy.train: correction",
    });
  });
});
