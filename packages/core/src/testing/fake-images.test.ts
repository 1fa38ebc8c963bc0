import { describe, expect, it } from "vitest";
import type { LoadedImage } from "../images/image-source.js";
import { FakeEngine } from "./fake-engine.js";

const engine = new FakeEngine({ reply: () => "seen", images: true });
const images = engine.images!;

function makeImage(hash: string, width = 40, height = 16): LoadedImage {
  return { hash: hash.repeat(32), width, height, mimeType: "image/png", bytes: new Uint8Array(0) };
}

describe("images of the fake engine", () => {
  it("stand between marks, with ids from the vocabulary's end on, the same for the same file", () => {
    const first = images.place(makeImage("ab"));
    const { vocabSize } = engine.info;
    expect(engine.detokenize(first.tokenIds)).toBe("<|image_start|><|image_end|>");
    expect([...first.tokenIds.subarray(1, -1)]).toEqual([vocabSize, vocabSize + 1, vocabSize + 2]);
    expect(first.tokenIds).toHaveLength(images.countTokens({ width: 40, height: 16 }));
    expect(images.place(makeImage("ab"))).toBe(first);
    const second = images.place(makeImage("cd"));
    expect(second.tokenIds[1]).toBe(vocabSize + 3);
    expect(images.find(vocabSize + 4)).toEqual({ placed: second, index: 1 });
    expect(images.find(vocabSize + 6)).toBeUndefined();
    expect(images.find(5)).toBeUndefined();
  });

  it("stand in sequences, and are skipped where tokens become text", async () => {
    const placed = images.place(makeImage("ef"));
    const sequence = engine.createSequence();
    const result = await sequence.generate([65, ...placed.tokenIds, 66], { maxTokens: 9 });
    expect(result.text).toBe("seen");
    expect(engine.detokenize(sequence.tokenIds, { special: false })).toBe("ABseen");
    const [scored] = await engine.score([{ tokenIds: sequence.tokenIds }]);
    expect([...scored!.logprobs.slice(2, 5)]).toEqual([0, 0, 0]);
    expect([...scored!.logprobs.slice(-5)]).toEqual([...result.logprobs]);
    const unknown = images.find(engine.info.vocabSize)!.placed.tokenIds[1]! + 1000;
    await expect(sequence.prefill([unknown])).rejects.toMatchObject({
      code: "engine/bad-token",
      subject: "token 0",
      received: `${unknown}`,
    });
    const lossMask = [...sequence.tokenIds].map((_, t) => (t === 3 ? 1 : 0));
    await expect(
      engine.train(
        [{ tokenIds: sequence.tokenIds, lossMask }],
        () => ({ loss: 0, dLogprobs: new Float32Array(0) }),
        null,
      ),
    ).rejects.toMatchObject({ code: "engine/bad-batch", subject: "sequence 0, token 3" });
    sequence.dispose();
  });

  it("give logprobs that follow from the file, not from the order in which files came", async () => {
    const other = new FakeEngine({ reply: () => "seen", images: true });
    const score = async (on: FakeEngine) => {
      const { tokenIds } = on.images!.place(makeImage("12"));
      return [...(await on.score([{ tokenIds: [...tokenIds, 70, 71] }]))[0]!.logprobs];
    };
    expect(await score(other)).toEqual(await score(engine));
    expect(other.images!.place(makeImage("12")).tokenIds[1]).not.toBe(images.place(makeImage("12")).tokenIds[1]);
  });

  it("refuse a damaged file when they are prepared or used, not when they are placed", async () => {
    const damaged = new FakeEngine({ reply: () => "", images: { isDamaged: ({ hash }) => hash.startsWith("ba") } });
    const { tokenIds } = damaged.images!.place(makeImage("ba"));
    const bad = { code: "engine/bad-image" };
    await expect(damaged.images!.prepare(makeImage("ba"))).rejects.toMatchObject(bad);
    await expect(damaged.createSequence().prefill(tokenIds)).rejects.toMatchObject(bad);
    await expect(damaged.images!.prepare(makeImage("bb"))).resolves.toBeUndefined();
  });
});
