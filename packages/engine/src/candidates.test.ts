import type { LossFunction, TrainSequence } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import type { LlamaModel, LoadModelOptions } from "./index.js";
import {
  CANDIDATE_COUNT,
  checkGradients,
  fillAdapter,
  makeCandidateBatch,
  makeTreeBatch,
  type TinyModelOptions,
  TinyModels,
  weightedCandidates,
  weightedLogprobs,
} from "./testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const ways: [string, TinyModelOptions, Omit<LoadModelOptions, "path">][] = [
  ["F32 with LoRA", {}, { lora: { rank: 4, alpha: 8 } }],
  ["F32 with LoRA on the head", { tied: false }, { lora: { rank: 4, alpha: 8, targets: ["attn_q", "output"] } }],
  ["F32, full", {}, { trainable: "full" }],
  ["Q8_0 with LoRA", { type: "q8_0" }, { lora: { rank: 4, alpha: 8 } }],
];
const shape: TinyModelOptions = { embedding: 64, feedForward: 64, embeddingScale: 0.3 };

async function load(tiny: TinyModelOptions, options: Omit<LoadModelOptions, "path">): Promise<LlamaModel> {
  const model = await models.load({ ...shape, ...tiny }, { contextSize: 64, ...options });
  if (options.lora) await fillAdapter(model);
  return model;
}

/** Logprobs of every token of the vocabulary after a prefix: the logprob of one sequence each. */
async function scoreAll(model: LlamaModel, prefix: readonly number[], temperature: number): Promise<number[]> {
  const sequences = Array.from({ length: model.info.vocabSize }, (_, id) => ({
    tokenIds: [...prefix, id],
    from: prefix.length,
  }));
  const scores = await model.score(sequences, { temperature });
  return scores.map(({ logprobs }) => logprobs[prefix.length]!);
}

const tokens = [72, 105, 33, 10, 65, 200, 7];
const listAt = <Values extends Float32Array | Int32Array>(values: Values, t: number, count: number) => [
  ...values.subarray(t * count, (t + 1) * count),
];

describe("the likeliest tokens", () => {
  it.each(ways.flatMap((way) => [1, 0.7].map((temperature) => [...way, temperature] as const)))(
    "%s: those of the whole distribution (%#)",
    async (_, tiny, options, temperature) => {
      const model = await load(tiny, options);
      const count = 9;
      const [scored] = await model.score([{ tokenIds: tokens, from: 3 }], { temperature, likeliest: { count } });
      expect(scored!.likeliest!.ids).toHaveLength(tokens.length * count);
      expect(listAt(scored!.likeliest!.logprobs, 2, count)).toEqual(new Array(count).fill(0));
      for (const t of [3, 6]) {
        const all = await scoreAll(model, tokens.slice(0, t), temperature);
        const expected = [...all.keys()].sort((a, b) => all[b]! - all[a]! || a - b).slice(0, count);
        expect(listAt(scored!.likeliest!.ids, t, count)).toEqual(expected);
        listAt(scored!.likeliest!.logprobs, t, count).forEach((logprob, k) => {
          expect(Math.abs(logprob - all[expected[k]!]!)).toBeLessThan(1e-5);
        });
      }
      // Requesting them changes no other number.
      const [plain] = await model.score([{ tokenIds: tokens, from: 3 }], { temperature });
      expect(scored!.logprobs).toEqual(plain!.logprobs);
      await model.dispose();
    },
  );

  it.each(ways)("%s: with the bits of a conversation alone, and in any batch", async (_, tiny, options) => {
    const model = await load(tiny, options);
    const batch = makeTreeBatch().map(({ tokenIds }) => ({ tokenIds, from: 2 }));
    const together = await model.score(batch, { likeliest: { count: 5 } });
    for (const [i, sequence] of batch.entries())
      expect(await model.score([sequence], { likeliest: { count: 5 } })).toEqual([together[i]]);
    await model.dispose();
  });

  it("are those that generation reports, bit for bit where it samples as trained", async () => {
    const model = await load({}, { lora: { rank: 4, alpha: 8 } });
    expect(model.info.samplesAsTrained).toBe(true);
    const sequence = model.createSequence();
    const options = { temperature: 0.8, seed: 3, stopTokens: [], maxTokens: 6, topLogprobs: 12 };
    const { tokenIds, topLogprobs } = await sequence.generate(tokens, options);
    sequence.dispose();
    const whole = { tokenIds: [...tokens, ...tokenIds], from: tokens.length };
    const [scored] = await model.score([whole], { temperature: 0.8, likeliest: { count: 12 } });
    topLogprobs!.forEach((list, k) => {
      expect(listAt(scored!.likeliest!.ids, tokens.length + k, 12)).toEqual(list.map(({ id }) => id));
      expect(listAt(scored!.likeliest!.logprobs, tokens.length + k, 12)).toEqual(list.map(({ logprob }) => logprob));
    });
    await model.dispose();
  });

  it("are all tokens of the vocabulary if so many are wanted, or all below an id", async () => {
    const model = await load({}, { lora: { rank: 4 } });
    const { vocabSize } = model.info;
    const sequence = { tokenIds: tokens, from: 6 };
    const [all] = await model.score([sequence], { likeliest: { count: vocabSize } });
    const [below] = await model.score([sequence], { likeliest: { count: 100, below: 100 } });
    const ids = listAt(all!.likeliest!.ids, 6, vocabSize);
    const logprobs = listAt(all!.likeliest!.logprobs, 6, vocabSize);
    expect([...ids].sort((a, b) => a - b)).toEqual(Array.from({ length: vocabSize }, (_, id) => id));
    expect(logprobs.reduce((sum, logprob) => sum + Math.exp(logprob), 0)).toBeCloseTo(1, 5);
    expect(logprobs).toEqual([...logprobs].sort((a, b) => b - a));
    // Logprobs are over the whole vocabulary nevertheless.
    expect(listAt(below!.likeliest!.ids, 6, 100)).toEqual(ids.filter((id) => id < 100));
    expect(listAt(below!.likeliest!.logprobs, 6, 100)).toEqual(logprobs.filter((_, k) => ids[k]! < 100));
    for (const likeliest of [{ count: 0 }, { count: vocabSize + 1 }, { count: 5, below: 4 }, { count: 1, below: 1e6 }])
      await expect(model.score([sequence], { likeliest })).rejects.toMatchObject({ code: "engine/bad-option" });
    await model.dispose();
  });
});

describe("gradients of candidates", () => {
  it.each(ways.slice(0, 3).flatMap((way) => [1, 0.7].map((temperature) => [...way, temperature] as const)))(
    "%s: of finite differences (%#)",
    async (_, tiny, options, temperature) => {
      const model = await load(tiny, options);
      const checks = await checkGradients(model, makeCandidateBatch(), weightedCandidates, { temperature });
      expect(checks.length).toBeGreaterThan(3);
      for (const check of checks) expect(Math.abs(check.analytic), check.name).toBeGreaterThan(1e-3);
      expect(checks.filter((check) => check.relativeError > 5e-3)).toEqual([]);
      await model.dispose();
    },
  );

  // Over quantized weights activations are rounded, so that finite differences say little.
  it.each(ways.flatMap((way) => [1, 0.7].map((temperature) => [...way, temperature] as const)))(
    "%s: of sequences that end with each candidate (%#)",
    async (_, tiny, options, temperature) => {
      const model = await load(tiny, options);
      const { tokenIds } = makeCandidateBatch()[0]!;
      const t = 24;
      const ids = [5, 77, 240];
      const slopes = [0.7, -0.2, 0.4];
      const lossMask = Array.from(tokenIds, (_, i) => (i === t ? 1 : 0));
      const read = async (batch: TrainSequence[], loss: LossFunction) => {
        const { loss: value } = await model.train(batch, loss, null, { temperature });
        const gradient: number[] = [];
        for (const { name } of model.listTensors().filter(({ trainable }) => trainable))
          gradient.push(...(await model.readTensor(name, "gradient")));
        await model.zeroGradients();
        return { value, gradient };
      };
      const spread = (values: readonly number[]) => Array.from(tokenIds, () => values).flat();
      const candidates = { count: 3, ids: Int32Array.from(spread(ids)), columns: { weights: spread(slopes) } };
      const columns = { weights: Array.from(tokenIds, () => -0.3) };
      const found = await read([{ tokenIds, lossMask, columns, candidates }], weightedCandidates);
      const prefix = Array.from(tokenIds).slice(0, t);
      const others = [tokenIds[t]!, ...ids].map((id, k) => ({
        tokenIds: [...prefix, id],
        lossMask: lossMask.slice(0, t + 1),
        columns: { weights: Array.from({ length: t + 1 }, () => [-0.3, ...slopes][k]!) },
      }));
      const wanted = await read(others, weightedLogprobs);
      expect(Math.abs(found.value - wanted.value)).toBeLessThan(1e-5);
      const apart = Math.hypot(...found.gradient.map((x, i) => x - wanted.gradient[i]!));
      // The gradient through a streamed head of quantized weights is rounded.
      expect(apart / Math.hypot(...wanted.gradient)).toBeLessThan(tiny.type === "q8_0" ? 2e-3 : 1e-5);
      await model.dispose();
    },
  );

  it.each(ways)(
    "%s: of micro-batches together, and the token's own bits without candidates",
    async (_, tiny, options) => {
      const model = await load(tiny, options);
      const seen: number[][] = [];
      const read = async (batch: TrainSequence[], loss: LossFunction, microBatchTokens?: number) => {
        const logprobs: number[][] = batch.map(() => []);
        const { loss: value } = await model.train(
          batch,
          (inputs) => {
            inputs.sequenceIndices.forEach((index, i) => {
              logprobs[index] = [...inputs.logprobs.subarray(inputs.offsets[i], inputs.offsets[i + 1])];
            });
            return loss(inputs);
          },
          null,
          { microBatchTokens },
        );
        seen.push(logprobs.flat());
        const { name } = model.listTensors().find(({ trainable }) => trainable)!;
        const gradient = await model.readTensor(name, "gradient");
        await model.zeroGradients();
        return { value, gradient };
      };
      const whole = await read(makeCandidateBatch(), weightedCandidates);
      const parts = await read(makeCandidateBatch(), weightedCandidates, 8);
      await read(makeTreeBatch(), weightedLogprobs);
      expect(parts.value).toBeCloseTo(whole.value, 4);
      const apart = Math.hypot(...whole.gradient.map((x, i) => x - parts.gradient[i]!));
      // Over quantized weights gradients are rounded, and micro-batches share other prefixes.
      expect(apart / Math.hypot(...whole.gradient)).toBeLessThan(tiny.type === "q8_0" ? 2e-3 : 1e-5);
      expect(seen[1]).toEqual(seen[0]);
      expect(seen[2]).toEqual(seen[0]);
      await model.dispose();
    },
  );

  it("elsewhere have the bits of here", async () => {
    const model = await load({}, { lora: { rank: 4, alpha: 8 } });
    const read = async (compute?: Parameters<LlamaModel["train"]>[3]) => {
      const { loss } = await model.train(makeCandidateBatch(), weightedCandidates, null, compute);
      const { name } = model.listTensors().find(({ trainable }) => trainable)!;
      const gradient = await model.readTensor(name, "gradient");
      await model.zeroGradients();
      return { loss, gradient };
    };
    const here = await read();
    const other = await load({}, { lora: { rank: 4, alpha: 8 } });
    const shards: number[] = [];
    const elsewhere = await read({
      compute: (shard) => {
        shards.push(shard.candidates!.length / shard.targets.length);
        return other.computeGradient(shard, weightedCandidates);
      },
    });
    expect(shards).toContain(CANDIDATE_COUNT);
    expect(elsewhere).toEqual(here);
    await Promise.all([model.dispose(), other.dispose()]);
  });

  it("need as many candidates for each token, of the vocabulary", async () => {
    const model = await load({}, { lora: { rank: 4 } });
    const [first, second] = makeCandidateBatch();
    const candidates = first!.candidates!;
    const train = (...batch: TrainSequence[]) => model.train(batch, weightedCandidates, null);
    await expect(train(first!, { ...second!, candidates: undefined })).rejects.toMatchObject({
      code: "engine/bad-batch",
      subject: "train: sequence 1",
    });
    const other = { ...candidates, ids: candidates.ids.map((id) => id + 1e6) };
    await expect(train({ ...first!, candidates: other })).rejects.toMatchObject({ code: "engine/bad-token" });
    const short = { ...candidates, ids: candidates.ids.subarray(1) };
    await expect(train({ ...first!, candidates: short })).rejects.toMatchObject({ code: "engine/bad-batch" });
    const columns = { weights: [1] };
    await expect(train({ ...first!, candidates: { ...candidates, columns } })).rejects.toMatchObject({
      code: "engine/bad-batch",
      subject: "train: sequence 0, candidates' column weights",
    });
    const loss: LossFunction = (inputs) => ({ ...weightedCandidates(inputs), dCandidates: new Float32Array(1) });
    await expect(model.train([first!], loss, null)).rejects.toMatchObject({ subject: "loss: dCandidates" });
    await model.dispose();
  });
});
