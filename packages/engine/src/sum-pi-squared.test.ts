import { afterAll, describe, expect, it } from "vitest";
import { TinyModels } from "./testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const prefix = [7, 120, 3, 65, 200];

describe("sums of squared probabilities", () => {
  // A frozen head is processed in tiles; a trained one has its logits in chunks.
  it.each([
    ["lora", 1],
    ["lora", 0.6],
    ["full", 1],
    ["full", 0.6],
  ] as const)("are those of the softmax over the vocabulary: %s, temperature %f", async (trainable, temperature) => {
    const lora = { rank: 2, alpha: 4, targets: ["attn_q"] };
    const model = await models.load(
      { seed: 3 },
      trainable === "lora" ? { trainable, lora, maxSequences: 4 } : { trainable, maxSequences: 4 },
    );
    // Every token once, after the same prefix.
    const all = Array.from({ length: model.info.vocabSize }, (_, token) => ({
      tokenIds: [...prefix, token],
      from: prefix.length,
    }));
    const scores = await model.score(all, { temperature, entropy: true, sumPiSquared: true });
    const probabilities = scores.map(({ logprobs }) => Math.exp(logprobs.at(-1)!));
    expect(probabilities.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 5);
    const expected = probabilities.reduce((sum, p) => sum + p * p, 0);
    expect(expected).toBeGreaterThan(2 / model.info.vocabSize);
    for (const { sumPiSquared } of scores) {
      expect(sumPiSquared!).toHaveLength(prefix.length + 1);
      expect(sumPiSquared!.slice(0, -1)).toEqual(new Float32Array(prefix.length));
      expect(Math.abs(sumPiSquared!.at(-1)! / expected - 1)).toBeLessThan(1e-5);
    }
    // Requesting them changes no other number, and without a request there are none.
    const plain = await model.score(all.slice(0, 3), { temperature, entropy: true });
    const asked = await model.score(all.slice(0, 3), { temperature, entropy: true, sumPiSquared: true });
    for (const [i, score] of plain.entries()) {
      expect(score.sumPiSquared).toBeNull();
      expect(asked[i]).toEqual({ ...score, sumPiSquared: expect.any(Float32Array) });
    }
  });
});
