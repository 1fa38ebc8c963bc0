import type { GradientShard, ScoreShard, TrainSequence } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import type { LlamaModel } from "../index.js";
import {
  checkGradients,
  makeNormals,
  makeStubImage,
  type TinyModelOptions,
  TinyModels,
  weightedLogprobs,
} from "../testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

type Model = Awaited<ReturnType<TinyModels["loadWithStub"]>>;
const [cat, dog, owl] = [makeStubImage(5, 16, 16), makeStubImage(9, 24, 8), makeStubImage(11, 8, 16)];

/**
 * Conversations that share a prompt with an image, one of them with a second image, and one that begins with an image.
 */
function makeBatch({ images, info }: Model): TrainSequence[] {
  const place = (image: typeof cat) => [...images.place(image).tokenIds];
  const prompt = [5, 6, 7, ...place(cat), 8];
  const normal = makeNormals(3);
  return [
    [...prompt, 20, 21, ...place(dog), 22, 23],
    [...prompt, 20, 21, ...place(owl), 24, 25],
    [...prompt, 30, 31],
    [...place(dog), 20, 21, 40],
    [...place(owl), 20, 21],
  ].map((tokenIds) => {
    const lossMask = tokenIds.map((id, t) => (t > 3 && id < info.vocabSize ? 1 : 0));
    return { tokenIds, lossMask, columns: { weights: tokenIds.map(() => normal()) } };
  });
}

async function readGradients(model: LlamaModel): Promise<Map<string, Float32Array>> {
  const gradients = new Map<string, Float32Array>();
  for (const { name, trainable } of model.listTensors())
    if (trainable) gradients.set(name, await model.readTensor(name, "gradient"));
  await model.zeroGradients();
  return gradients;
}

describe("training on images", () => {
  const cases: [string, TinyModelOptions, Parameters<TinyModels["loadWithStub"]>[1], object][] = [
    ["all weights", { layers: 1, vocabulary: 288 }, { trainable: "full" }, {}],
    ["an adapter", { architecture: "llama", layers: 1 }, { lora: { rank: 2 } }, {}],
    ["as on a device", { layers: 1 }, { trainable: "full" }, { emulatedDevice: {} }],
    ["rows and columns", { architecture: "qwen2vl", layers: 1, tied: true }, { trainable: "full" }, {}],
    ["deep layers", { architecture: "qwen3vl", layers: 2, deepLayers: 1 }, { lora: { rank: 2 } }, {}],
    ["deep layers up to the last", { architecture: "qwen3vl", layers: 2, deepLayers: 2 }, { trainable: "full" }, {}],
    [
      "rows, columns and deep layers as on a device",
      { architecture: "qwen3vl", layers: 2, deepLayers: 2 },
      { lora: { rank: 2 } },
      { emulatedDevice: {} },
    ],
  ];
  for (const [name, tiny, options, stub] of cases) {
    it(`has the gradients of finite differences: ${name}`, async () => {
      const model = await models.loadWithStub({ ...tiny, embeddingScale: 0.3 }, options, { scale: 0.3, ...stub });
      const batch = makeBatch(model);
      for (const { name, relativeError } of await checkGradients(model, batch, weightedLogprobs)) {
        expect(relativeError, name).toBeLessThan(0.02);
      }
      if (options?.trainable !== "full") return;
      // A tied output gives every token of the vocabulary a gradient; untied, the gradient of the input shows
      // separately.
      const untied = await models.loadWithStub({ ...tiny, tied: false }, options, stub);
      await untied.train(makeBatch(untied), weightedLogprobs, null);
      const gradient = await untied.readTensor("token_embd.weight", "gradient");
      const { embeddingSize } = untied.info;
      const norm = (id: number) => Math.hypot(...gradient.subarray(id * embeddingSize, (id + 1) * embeddingSize));
      // The token that replaces vectors gets none of their gradient.
      expect(norm(0)).toBe(0);
      expect(norm(6)).toBeGreaterThan(0);
    });
  }

  it("computes the same bits in any order of images, on any process", async () => {
    const path = await models.write();
    const options = { path, trainable: "full" as const };
    const [first, second] = [await models.loadWithStub({}, options), await models.loadWithStub({}, options)];
    for (const image of [makeStubImage(77), owl, dog, cat]) second.images.place(image);
    expect(second.images.place(cat).tokenIds).not.toEqual(first.images.place(cat).tokenIds);

    // Small micro-batches, so that there are several.
    const train = { microBatchTokens: 48 };
    const [batch, shifted] = [makeBatch(first), makeBatch(second)];
    const trained = await first.train(batch, weightedLogprobs, null, train);
    expect(trained.microBatches).toBeGreaterThan(1);
    const expected = await readGradients(first);
    const shards: GradientShard[] = [];
    const elsewhere = await second.train(shifted, weightedLogprobs, null, {
      ...train,
      compute: (shard) => {
        shards.push(shard);
        return first.computeGradient(structuredClone(shard), weightedLogprobs);
      },
    });
    expect(elsewhere.loss).toBe(trained.loss);
    expect(await readGradients(second)).toEqual(expected);
    await second.train(shifted, weightedLogprobs, null, train);
    expect(await readGradients(second)).toEqual(expected);
    // A batch's order does not change the rows.
    const seen: GradientShard[] = [];
    const look = (shard: GradientShard, here: () => Promise<never>) => {
      seen.push(shard);
      return here();
    };
    await first.train([...batch].reverse(), weightedLogprobs, null, { ...train, compute: look as never });
    await first.zeroGradients();
    expect(seen.map(({ tokens }) => tokens)).toEqual(shards.map(({ tokens }) => tokens));

    // Ids of a shard count from the vocabulary's end, in the order of their first appearance.
    for (const { tokens, images } of shards) {
      const vectors = [...new Set(tokens.filter((id) => id >= first.info.vocabSize))];
      expect(vectors).toEqual(vectors.map((_, i) => first.info.vocabSize + i));
      expect(images!.reduce((sum, { count }) => sum + count, 0)).toBe(vectors.length);
    }

    const scores = await first.score(batch);
    const found: ScoreShard[] = [];
    const others = await second.score(shifted, {
      compute: (shard) => {
        found.push(shard);
        return first.computeScores(structuredClone(shard));
      },
    });
    expect(others.map(({ logprobs }) => logprobs)).toEqual(scores.map(({ logprobs }) => logprobs));
    expect(found.length).toBeGreaterThan(0);

    const text = await models.load({}, options);
    await expect(text.computeScores(found[0]!)).rejects.toMatchObject({ code: "engine/no-images" });
    const layout = () => [{ vectors: 3, columns: 0, rows: 0 }];
    const otherwise = await models.loadWithStub({}, options, { layout });
    await expect(otherwise.computeScores(found[0]!)).rejects.toMatchObject({
      code: "engine/bad-batch",
      subject: expect.stringMatching(/^image [0-9a-f]{12}$/),
      received: "3",
    });
    // The failed call leaves nothing pinned.
    otherwise.images.place(cat);
    expect(otherwise.images.stats().held).toBeGreaterThan(0);
  });

  it("takes a step, after which generation sees the new weights", async () => {
    const model = await models.loadWithStub({}, { lora: { rank: 4 } });
    const batch = makeBatch(model);
    const prompt = Array.from(batch[2]!.tokenIds).slice(0, -2);
    const say = () => model.createSequence().generate(prompt, { maxTokens: 1, temperature: 1, seed: 3 });
    const before = await say();
    await model.train(batch, weightedLogprobs, { learningRate: 0.05 });
    const after = await say();
    expect(after.stats.reusedTokens).toBe(0);
    expect([...after.logprobs]).not.toEqual([...before.logprobs]);
    const [scored] = await model.score([{ tokenIds: [...prompt, ...after.tokenIds] }]);
    expect(Math.abs(scored!.logprobs.at(-1)! - after.logprobs[0]!)).toBeLessThan(1e-5);
  });
});
