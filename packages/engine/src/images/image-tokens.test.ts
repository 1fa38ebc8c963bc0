import { join } from "node:path";
import { type GenerateResult, type LoadedImage, loadImage } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import type { LlamaModel } from "../index.js";
import {
  makeNormals,
  makeStubImage,
  makeTinyProjector,
  randomTokens,
  type TinyModelOptions,
  TinyModels,
} from "../testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

type Model = Awaited<ReturnType<TinyModels["loadWithStub"]>>;
const sampling = { maxTokens: 8, temperature: 0.9, stopTokens: [] };
const [cat, dog] = [makeStubImage(5), makeStubImage(9)];

/** Nine tokens, an image (a mark, 12 vectors, a mark), and more tokens. */
function makePrompt(model: Model, image: LoadedImage, after = randomTokens(7, 2)): number[] {
  return [...randomTokens(9, 1), ...model.images.place(image).tokenIds, ...after];
}

async function ask(model: LlamaModel, prompt: readonly number[], seed = 1, options = {}): Promise<GenerateResult> {
  const sequence = model.createSequence();
  const result = await sequence.generate(prompt, { ...sampling, seed, ...options });
  sequence.dispose();
  return result;
}

function expectSameBits(received: GenerateResult, expected: GenerateResult): void {
  expect([...received.tokenIds]).toEqual([...expected.tokenIds]);
  expect([...received.logprobs]).toEqual([...expected.logprobs]);
}

/** For a tied output: makes the distributions less peaked. */
const soft = { embeddingScale: 0.3 };
const wide = { embedding: 256, heads: 8, headSize: 32, feedForward: 256, embeddingScale: 0.3 };
const cases: [string, TinyModelOptions, Parameters<TinyModels["load"]>[1], parity: number][] = [
  ["f32", soft, { trainable: "full" }, 1e-5],
  ["f32, llama's layers", { architecture: "llama" }, { lora: { rank: 4 } }, 1e-5],
  ["f32, qwen2's layers", { architecture: "qwen2" }, { lora: { rank: 4 } }, 1e-5],
  ["f32, granite's layers", { architecture: "granite", embeddingScale: 0.1 }, { lora: { rank: 4 } }, 1e-5],
  ["f32, mistral3's layers", { architecture: "mistral3", embeddingScale: 0.1 }, { lora: { rank: 4 } }, 1e-5],
  ["f32, phi3's layers", { architecture: "phi3", embeddingScale: 0.1 }, { lora: { rank: 4 } }, 1e-5],
  ["f32, lfm2's layers", { architecture: "lfm2", embeddingScale: 0.1 }, { lora: { rank: 4 } }, 1e-5],
  ["f32, qwen35's layers", { architecture: "qwen35", embeddingScale: 0.1 }, { lora: { rank: 4 } }, 1e-5],
  ["f32, granitehybrid's layers", { architecture: "granitehybrid", embeddingScale: 0.1 }, { lora: { rank: 4 } }, 1e-5],
  ["f32, rows and columns", { architecture: "qwen2vl" }, { trainable: "full" }, 1e-5],
  ["f32, rows and columns, deep layers", { architecture: "qwen3vl", ...soft }, { lora: { rank: 4 } }, 1e-5],
  ["q4_K, rows and columns", { architecture: "qwen2vl", type: "q4_K", ...wide }, { lora: { rank: 4 } }, 2e-2],
  ["f16", { type: "f16", ...soft }, { lora: { rank: 4 } }, 2e-3],
  ["q8_0", { type: "q8_0", ...soft, embedding: 64, feedForward: 64 }, { lora: { rank: 4 } }, 5e-3],
  ["q4_K", { type: "q4_K", ...wide }, { lora: { rank: 4 } }, 2e-2],
  ["flash attention", soft, { lora: { rank: 4 }, flashAttention: true, kvType: "f16" }, 2e-2],
];

describe("vectors of images among tokens", () => {
  for (const [name, tiny, options, parity] of cases) {
    it(`have the same bits however they are evaluated: ${name}`, async () => {
      const path = await models.write(tiny);
      const load = (more = {}) => models.loadWithStub({}, { path, contextSize: 256, ...options, ...more });
      const model = await load();
      const prompt = makePrompt(model, cat);
      const expected = await ask(model, prompt);
      expect(expected.stats).toMatchObject({ prefillTokens: 30, reusedTokens: 0 });
      expect(new Set(expected.tokenIds).size).toBeGreaterThan(1);

      // Decoding and the trainer agree; vectors are not predicted.
      const whole = [...prompt, ...expected.tokenIds];
      const [scored] = await model.score([{ tokenIds: whole }], { temperature: 0.9 });
      expected.logprobs.forEach((logprob, t) => {
        expect(Math.abs(logprob - scored!.logprobs[30 + t]!)).toBeLessThan(parity);
      });
      const vectors = scored!.logprobs.filter((_, t) => whole[t]! >= model.info.vocabSize);
      expect([...vectors]).toEqual(Array(12).fill(0));
      expect(scored!.logprobs.filter((logprob) => logprob === 0)).toHaveLength(13);

      // The image's content makes a difference.
      const [other] = await model.score([{ tokenIds: [...makePrompt(model, dog), ...expected.tokenIds] }], {
        temperature: 0.9,
      });
      expect(Math.abs(other!.logprobs[30]! - scored!.logprobs[30]!)).toBeGreaterThan(1e-3);

      // With neighbours, after a fork, after a flush, with two threads, in other chunks.
      const neighbours = [2, 3, 4, 5].map((seed) => ask(model, makePrompt(model, makeStubImage(20 + seed)), seed));
      expectSameBits(await ask(model, prompt), expected);
      await Promise.all(neighbours);
      const root = model.createSequence();
      await root.prefill(prompt);
      expectSameBits(await root.fork().generate([], { ...sampling, seed: 1 }), expected);
      await model.flushCache();
      expectSameBits(await root.fork().generate([], { ...sampling, seed: 1 }), expected);
      const reusing = options?.flashAttention ? [] : [{ prefillChunk: 7 }, { prefillChunk: 3, threads: 2 }];
      for (const other of [...reusing, { prefixReuse: false, seed: 9 }]) {
        const another = await load(other);
        another.images.place(dog);
        // Here the image has other ids.
        const shifted = makePrompt(another, cat);
        expect(shifted).not.toEqual(prompt);
        if (options?.lora)
          for (const { name, trainable } of model.listTensors())
            if (trainable) await another.writeTensor(name, await model.readTensor(name));
        expectSameBits(await ask(another, shifted), expected);
      }
    });
  }

  describe.each([
    ["plain positions", {}, false],
    ["rows and columns", { architecture: "qwen2vl" }, true],
    ["rows and columns, deep layers", { architecture: "qwen3vl", embeddingScale: 0.3 }, true],
  ] satisfies [string, TinyModelOptions, boolean][])("with %s", (_, tiny, grids) => {
    it("are reused as a prefix; another image reuses the text before it alone", async () => {
      const model = await models.loadWithStub(tiny, { contextSize: 256 });
      const prompt = makePrompt(model, cat);
      const first = await ask(model, prompt);
      const again = await ask(model, prompt);
      expect(again.stats).toMatchObject({ prefillTokens: 0, reusedTokens: 30 });
      expectSameBits(again, first);
      // The mark before the image is shared.
      expect((await ask(model, makePrompt(model, dog))).stats).toMatchObject({ reusedTokens: 10, prefillTokens: 20 });
      const longer = await ask(model, makePrompt(model, cat, randomTokens(5, 77)));
      expect(longer.stats).toMatchObject({ reusedTokens: 23, prefillTokens: 5 });
      // Prompts with the cat's vectors ran twice, but the cat was encoded once.
      expect(model.projector.encoded).toEqual([5, 9]);
    });

    it("in a later turn, at the end of a prompt, and over few slots have the results of a fresh prompt", async () => {
      for (const swapBytes of [1 << 30, 0]) {
        const model = await models.loadWithStub(tiny, { maxSequences: 3, contextSize: 256, swapBytes });
        const fresh = await models.loadWithStub(tiny, { prefixReuse: false, contextSize: 256 });
        const turns = await Promise.all(
          [1, 2, 3, 4, 5, 6].map(async (seed) => {
            const sequence = model.createSequence();
            const start = makePrompt(model, makeStubImage(seed), randomTokens(3, seed));
            const { tokenIds } = await sequence.generate(start, { ...sampling, seed });
            return { seed, sequence, said: [...tokenIds] };
          }),
        );
        for (const { seed, sequence, said } of turns) {
          // A tool answers with only a picture.
          const vectors = model.images.place(dog).tokenIds.subarray(0, 13);
          const next = await sequence.generate([3, 4, ...vectors], { ...sampling, seed: 50 + seed });
          const whole = [
            ...makePrompt(fresh, makeStubImage(seed), randomTokens(3, seed)),
            ...said,
            3,
            4,
            ...fresh.images.place(dog).tokenIds.subarray(0, 13),
          ];
          expectSameBits(next, await ask(fresh, whole, 50 + seed));
          sequence.dispose();
        }
        expect(model.schedulerStats().evictions).toBeGreaterThan(0);
        expect(model.schedulerStats().restores > 0).toBe(swapBytes > 0);
      }
    });

    it("are shared in whole chunks of one kind, where rows differ by their batch", async () => {
      const load = (prefixReuse: boolean) =>
        models.loadWithStub(tiny, {
          contextSize: 256,
          prefillChunk: 5,
          flashAttention: true,
          kvType: "f16",
          prefixReuse,
        });
      const [reusing, fresh] = await Promise.all([load(true), load(false)]);
      // Chunks of the prompt: 5 + 5 tokens, 5 + 5 + 2 vectors, 5 + 3 tokens.
      await ask(reusing, makePrompt(reusing, cat));
      for (const [name, expected, cut] of [
        ["the same", 27, (ids: number[]) => ids],
        ["other text behind the image", 22, (ids: number[]) => [...ids.slice(0, 23), ...randomTokens(9, 5)]],
        ["no text behind the image", grids ? 10 : 20, (ids: number[]) => ids.slice(0, 22)],
        ["text within the image's marks", 10, (ids: number[]) => [...ids.slice(0, 12), 4, 5, 6]],
        ["text in the place of the image", 10, (ids: number[]) => [...ids.slice(0, 10), 4, 5, 6]],
      ] as const) {
        const prompt = cut(makePrompt(reusing, cat));
        const result = await ask(reusing, prompt, 3);
        expect([name, result.stats.reusedTokens]).toEqual([name, expected]);
        expectSameBits(result, await ask(fresh, cut(makePrompt(fresh, cat)), 3));
      }
    });

    it("are distinguished from others of the same number by their places", async () => {
      const model = await models.loadWithStub(tiny, { contextSize: 256 });
      const ask2 = async (columns: number, rows: number) => {
        const image = { ...makeStubImage(5, 8 * columns, 8 * rows), bytes: makeStubImage(5, 32, 24).bytes };
        return (await ask(model, makePrompt(model, { ...image, hash: `${columns}` }), 1, { temperature: 1 })).logprobs;
      };
      const [wide, high] = [await ask2(4, 3), await ask2(3, 4)];
      expect([...wide].every((logprob, t) => logprob === high[t])).toBe(!grids);
    });

    it("cut within an image, a prefix is evaluated from the image on", async () => {
      const model = await models.loadWithStub(tiny, { contextSize: 256, trainable: "full" });
      const prompt = makePrompt(model, cat);
      await ask(model, prompt);
      const cuts = [
        [...prompt.slice(0, 15), 4, 5, 6],
        prompt.slice(0, 15),
        [...prompt.slice(0, 15), ...prompt.slice(12, 22), 7],
        prompt.slice(14, 30),
      ];
      for (const cut of cuts) {
        const reused = cut === cuts[3] ? 0 : grids ? 10 : Math.min(15, cut.length - 1);
        const result = await ask(model, cut, 2);
        expect(result.stats.reusedTokens).toBe(reused);
        await model.flushCache();
        expectSameBits(await ask(model, cut, 2), result);
        const [scored] = await model.score([{ tokenIds: [...cut, ...result.tokenIds] }], { temperature: 0.9 });
        result.logprobs.forEach((logprob, t) => {
          expect(Math.abs(logprob - scored!.logprobs[cut.length + t]!)).toBeLessThan(1e-5);
        });
        await model.flushCache();
        await ask(model, prompt);
      }
    });
  });

  it("wait for a batch of their own, be it one vector alone", async () => {
    const sizes = { contextSize: 4200, maxSequences: 2, prefillChunk: 4096 };
    const layout = () => [{ vectors: 1, columns: 0, rows: 0 }];
    const model = await models.loadWithStub({ layers: 1 }, sizes, { layout });
    const placeIn = ({ images }: Model) => [...images.place(cat).tokenIds];
    // One step evaluates no more than the first chunk of the long prompt.
    const results = await Promise.all([ask(model, randomTokens(4150, 1)), ask(model, placeIn(model))]);
    expect(results.map(({ stats }) => stats.prefillTokens)).toEqual([4150, 1]);
    const alone = await models.loadWithStub({ layers: 1 }, {}, { layout });
    expectSameBits(await ask(alone, placeIn(alone)), results[1]!);
  });

  it("have no text, and are refused if their image was released", async () => {
    const model = await models.loadWithStub();
    const prompt = makePrompt(model, cat, []);
    const { vocabSize } = model.info;
    expect(model.detokenize(prompt)).toBe(model.detokenize(prompt.filter((id) => id < vocabSize)));
    const bad = (subject: string) => ({ code: "engine/bad-token", subject });
    expect(() => model.detokenize([vocabSize + 12])).toThrow(expect.objectContaining(bad("detokenize")));
    await expect(ask(model, [1, vocabSize + 12])).rejects.toMatchObject(bad("deltaTokenIds, token 1"));
    await expect(model.score([{ tokenIds: [1, vocabSize + 12] }])).rejects.toMatchObject(
      bad("score: sequence 0, token 1"),
    );
    const lossMask = prompt.map((_, t) => (t === 11 ? 1 : 0));
    const loss = () => ({ loss: 0, dLogprobs: new Float32Array(1) });
    const trained = await models.loadWithStub({}, { trainable: "full" });
    const batch = [{ tokenIds: makePrompt(trained, cat, []), lossMask }];
    await expect(trained.train(batch, loss, null)).rejects.toMatchObject({
      code: "engine/bad-batch",
      subject: "train: sequence 0, token 11",
      expected: "a lossMask of 0",
    });
    const text = await models.load();
    await expect(ask(text, [1, vocabSize])).rejects.toMatchObject(bad("deltaTokenIds"));
  });
});

/** A picture of random pixels, as a BMP file. */
function makeBitmap(width: number, height: number, seed: number): Promise<LoadedImage> {
  const normal = makeNormals(seed);
  const bytes = new Uint8Array(54 + width * height * 3).map((_, i) => (i < 54 ? 0 : 128 + 40 * normal()));
  const header = new DataView(bytes.buffer);
  header.setUint16(0, 0x424d);
  header.setUint32(2, bytes.length, true);
  header.setUint32(10, 54, true);
  header.setUint32(14, 40, true);
  header.setInt32(18, width, true);
  header.setInt32(22, height, true);
  header.setUint16(26, 1, true);
  header.setUint16(28, 24, true);
  return loadImage({ bytes });
}

describe("a request that does not fit", () => {
  it("is refused before its images are encoded", async () => {
    const model = await models.loadWithStub({}, { contextSize: 128 });
    const sequence = model.createSequence();
    const huge = makeStubImage(3, 255, 255);
    const prompt = makePrompt(model, huge);
    await expect(sequence.generate(prompt, sampling)).rejects.toMatchObject({ code: "engine/context-exceeded" });
    await expect(sequence.prefill(prompt)).rejects.toMatchObject({ code: "engine/context-exceeded" });
    expect(model.projector.encoded).toEqual([]);
    expect((await sequence.generate(makePrompt(model, cat), sampling)).tokenIds).toHaveLength(8);
  });
});

describe("a request whose images are still encoded", () => {
  /** A model whose projector waits until `open` is called. */
  async function hold() {
    const model = await models.loadWithStub();
    let open = () => {};
    model.projector.gate = new Promise((resolve) => {
      open = resolve;
    });
    return { model, open, sequence: model.createSequence() };
  }

  it("keeps its sequence busy", async () => {
    const { model, open, sequence } = await hold();
    const running = sequence.generate(makePrompt(model, cat), sampling);
    const busy = { code: "engine/sequence-busy", subject: "sequence" };
    await expect(sequence.generate([1], sampling)).rejects.toMatchObject(busy);
    expect(() => sequence.fork()).toThrow(expect.objectContaining(busy));
    expect(() => sequence.reset()).toThrow(expect.objectContaining(busy));
    open();
    expect((await running).tokenIds).toHaveLength(8);
    expect(sequence.tokenCount).toBe(38);
    sequence.reset();
    expect(sequence.tokenCount).toBe(0);
    // The failed request leaves nothing behind.
    const tooLong = sequence.generate([...makePrompt(model, dog), 1, 2], { maxTokens: 999 });
    await expect(tooLong).rejects.toMatchObject({ code: "engine/context-exceeded" });
    expect(sequence.tokenCount).toBe(0);
  });

  it("ends as aborted by its signal, its sequence's end, and the model's", async () => {
    const { model, open, sequence } = await hold();
    const controller = new AbortController();
    const aborted = sequence.generate(makePrompt(model, cat), { ...sampling, signal: controller.signal });
    controller.abort();
    expect(await aborted).toMatchObject({ finishReason: "aborted", text: "" });
    expect(sequence.tokenCount).toBe(0);
    const ended = sequence.generate(makePrompt(model, cat), sampling);
    sequence.dispose();
    open();
    expect((await ended).finishReason).toBe("aborted");
    const other = await hold();
    const running = other.sequence.generate(makePrompt(other.model, cat), sampling);
    const disposed = other.model.dispose();
    other.open();
    expect((await running).finishReason).toBe("aborted");
    await disposed;
  });
});

describe("loadModel with a projector", () => {
  it("places, encodes and evaluates pictures", async () => {
    const mmproj = join(models.folder, "mmproj.gguf");
    await makeTinyProjector(mmproj);
    const path = await models.write({ embeddingScale: 0.3 });
    const model = await models.load({}, { path, mmproj, imageMemory: 1, trainable: "full" });
    const images = model.images!;
    expect(images.info).toMatchObject({ path: mmproj, type: "mlp" });
    expect(images.info.hash).toMatch(/^[0-9a-f]{64}$/);
    const [one, two] = await Promise.all([makeBitmap(32, 32, 1), makeBitmap(48, 32, 2)]);
    const prompt = [5, 6, ...images.place(one).tokenIds, 7, ...images.place(two).tokenIds, 8];
    expect(images.countTokens(one)).toBe(images.place(one).tokenIds.length);
    const said = await ask(model, prompt);
    const [scored] = await model.score([{ tokenIds: [...prompt, ...said.tokenIds], from: prompt.length }], {
      temperature: 0.9,
    });
    said.logprobs.forEach((logprob, t) => {
      expect(Math.abs(logprob - scored!.logprobs[prompt.length + t]!)).toBeLessThan(1e-5);
    });
    // Nothing stays beyond the memory limit; encoded again, the images have the same bits.
    expect(images.stats()).toMatchObject({ held: 0, heldBytes: 0, encoded: 4, encodedAgain: 2 });
    const other = await models.load({}, { path, mmproj, trainable: "full", threads: 2 });
    const shown = [one, two].map((image) => [...other.images!.place(image).tokenIds]);
    expectSameBits(await ask(other, [5, 6, ...shown[0]!, 7, ...shown[1]!, 8]), said);
    expect(await images.decode(two)).toMatchObject({ width: 48, height: 32 });
  });

  it("gives the reason if it cannot", async () => {
    const path = await models.write();
    const missing = join(models.folder, "none.gguf");
    await expect(models.load({}, { path, mmproj: missing })).rejects.toMatchObject({
      code: "engine/file-not-found",
      subject: missing,
    });
    await expect(models.load({}, { path, mmproj: path })).rejects.toMatchObject({ code: "engine/bad-projector" });
  });
});
