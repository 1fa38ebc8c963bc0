import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type GenerateOptions, type LoadedImage, loadImage } from "@cria/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LlamaModel } from "../llama-model.js";
import type { LoadModelOptions } from "../load-native.js";
import {
  checkGradients,
  drawPicture,
  makeNormals,
  makeTinyProjector,
  pairPrompt,
  TinyModels,
  type VisionPair,
  visionPairs,
  weightedLogprobs,
} from "../testing/index.js";

type Layout = ({ tokens: number[] } | { vectors: number })[];

/** Results of llama.cpp's own mtmd and kernels for each pair; scripts/nightly/stock-vision.mjs has recorded them. */
interface Stock {
  layout: Layout;
  /** Greedy tokens and their logprobs. */
  tokens: number[];
  logprobs: number[];
  /** Layouts of single pictures, by width and height. */
  sizes: Record<string, Layout>;
}

const fixture = join(import.meta.dirname, "..", "..", "fixtures", "stock-vision.json");
const stock: Record<string, Stock> = JSON.parse(readFileSync(fixture, "utf8")).pairs;

const models = new TinyModels();
afterAll(() => models.cleanUp());

async function load(
  { name, model, projector }: VisionPair,
  options: Partial<LoadModelOptions> = {},
): Promise<LlamaModel> {
  const mmproj = join(models.folder, `${name}.mmproj.gguf`);
  await makeTinyProjector(mmproj, projector);
  return models.load(model, { mmproj, trainable: "full", contextSize: 256, ...options });
}

const flatten = (layout: Layout) =>
  layout.flatMap((part) => ("tokens" in part ? part.tokens : Array<number>(part.vectors).fill(-1)));
const largestDifference = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i]!)));

describe.each(visionPairs)("$name", (pair) => {
  const expected = stock[pair.name]!;
  let model: LlamaModel;
  let image: LoadedImage;
  let other: LoadedImage;
  beforeAll(async () => {
    model = await load(pair);
    image = await loadImage({ bytes: drawPicture(pair.width, pair.height) });
    other = await loadImage({ bytes: drawPicture(pair.height, pair.width) });
  });
  afterAll(() => model.dispose());

  const tokenize = (text: string) => [...model.tokenize(text, { special: true })];
  const showing = (shown: LoadedImage) => {
    const [before, behind] = pairPrompt.map(tokenize);
    return [...before!, ...model.images!.place(shown).tokenIds, ...behind!];
  };
  const hideIds = (tokenIds: ArrayLike<number>) => Array.from(tokenIds, (id) => (id < model.info.vocabSize ? id : -1));
  const generate = async (tokenIds: readonly number[], options: Partial<GenerateOptions> = {}) => {
    const sequence = model.createSequence();
    const result = await sequence.generate(tokenIds, { maxTokens: 24, temperature: 0, stopTokens: [], ...options });
    sequence.dispose();
    return result;
  };

  it("lays images out, and goes on behind one, as llama.cpp itself", async () => {
    for (const [size, layout] of Object.entries(expected.sizes)) {
      const [width, height] = size.split("x").map(Number) as [number, number];
      const { tokenIds } = model.images!.place({ ...image, hash: size, width, height });
      expect(hideIds(tokenIds), size).toEqual(flatten(layout));
      expect(model.images!.countTokens({ width, height })).toBe(tokenIds.length);
    }
    expect(hideIds(showing(image))).toEqual(flatten(expected.layout));
    const { tokenIds, logprobs } = await generate(showing(image));
    expect([...tokenIds]).toEqual(expected.tokens);
    expect(largestDifference(logprobs, expected.logprobs)).toBeLessThan(2e-4);
    expect(largestDifference((await generate(showing(other))).logprobs, expected.logprobs)).toBeGreaterThan(0.1);
  });

  it("has the same bits alone, among others, behind a cached prefix and in a second turn; scoring agrees", async () => {
    const prompt = showing(image);
    const sampled = { temperature: 0.9, seed: 4 };
    await model.flushCache();
    const alone = await generate(prompt, sampled);
    await model.flushCache();
    const [among] = await Promise.all([
      generate(prompt, sampled),
      generate(showing(other)),
      generate(tokenize("no picture at all")),
      generate([...prompt, ...prompt]),
    ]);
    const cached = await generate(prompt, sampled);
    // Layers with a state cannot return to a prefix that another conversation evaluated.
    expect(cached.stats.reusedTokens).toBe(pair.model.architecture === "qwen35" ? 0 : prompt.length);
    const sequence = model.createSequence();
    const turn = await sequence.generate(showing(other), { maxTokens: 3, temperature: 0, stopTokens: [] });
    const second = await sequence.generate(prompt, { ...sampled, maxTokens: 24, stopTokens: [] });
    sequence.dispose();
    await model.flushCache();
    const whole = [...showing(other), ...turn.tokenIds, ...prompt];
    for (const [result, reference] of [
      [among, alone],
      [cached, alone],
      [second, await generate(whole, sampled)],
    ] as const) {
      expect([...result.tokenIds]).toEqual([...reference.tokenIds]);
      expect([...result.logprobs]).toEqual([...reference.logprobs]);
    }
    const [scored] = await model.score([{ tokenIds: [...whole, ...second.tokenIds], from: whole.length }], sampled);
    expect(largestDifference(second.logprobs, scored!.logprobs.subarray(whole.length))).toBeLessThan(1e-5);
  });

  it("has the gradients of finite differences", async () => {
    const normal = makeNormals(7);
    // Two sequences share the image; a third shows two images.
    const batch = [
      [...showing(image), ...expected.tokens],
      [...showing(image), ...expected.tokens.slice(4, 12)],
      [...showing(other), ...showing(image)],
    ].map((tokenIds) => ({
      tokenIds,
      lossMask: hideIds(tokenIds).map((id, t) => (t > 0 && id >= 0 ? 1 : 0)),
      columns: { weights: tokenIds.map(() => normal()) },
    }));
    const names = ["token_embd.weight", "blk.0.attn_norm.weight", "blk.1.attn_k.weight", "blk.1.ffn_up.weight"];
    const checks = await checkGradients(model, batch, weightedLogprobs, { names: (name) => names.includes(name) });
    expect(checks.map(({ name }) => name).sort()).toEqual([...names].sort());
    for (const check of checks) expect(Math.abs(check.analytic), check.name).toBeGreaterThan(1e-3);
    expect(checks.filter(({ relativeError }) => relativeError > 2e-3)).toEqual([]);
  });
});
