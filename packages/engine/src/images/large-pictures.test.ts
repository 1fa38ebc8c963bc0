import { join } from "node:path";
import { loadImage } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import type { LoadModelOptions } from "../load-native.js";
import { drawPicture, makeTinyProjector, TinyModels, visionPairs } from "../testing/index.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

describe("a large picture", () => {
  const pair = visionPairs.find(({ name }) => name === "Qwen2.5-VL")!;
  /** 16 heads over 4,096 patches: one layer's probabilities are 1 GiB. */
  const projector = { ...pair.projector, heads: 16, embedding: 128 };
  const open = async (options: Partial<LoadModelOptions> = {}) => {
    const mmproj = join(models.folder, "large.mmproj.gguf");
    await makeTinyProjector(mmproj, projector);
    return models.load(pair.model, { mmproj, trainable: "full", contextSize: 2048, ...options });
  };
  const picture = () => loadImage({ bytes: drawPicture(512, 512) });

  it("takes memory for its patches, not for their pairs, and has the same bits with any number of threads", async () => {
    const vectors = async (threads: number) => {
      const model = await open({ threads });
      const image = await picture();
      expect(model.images!.countTokens(image)).toBeGreaterThan(1024);
      const before = process.resourceUsage().maxRSS;
      await model.images!.prepare(image);
      expect(process.resourceUsage().maxRSS - before).toBeLessThan(300 * 1024);
      const sequence = model.createSequence();
      const prompt = [...model.images!.place(image).tokenIds, 1, 2];
      const said = await sequence.generate(prompt, { maxTokens: 4, temperature: 0, stopTokens: [] });
      await model.dispose();
      return [...said.tokenIds, ...said.logprobs];
    };
    expect(await vectors(3)).toEqual(await vectors(1));
  });

  it("is refused before it is decoded where it would take too much, or does not fit", async () => {
    const image = await picture();
    const small = await open({ imageEncodeMemory: 2 ** 20 });
    await expect(small.images!.prepare(image)).rejects.toMatchObject({
      code: "engine/bad-image",
      remedy: expect.stringContaining("imageMaxTokens"),
    });
    const narrow = await open({ contextSize: 512 });
    await expect(narrow.images!.prepare(image)).rejects.toMatchObject({ code: "engine/bad-image" });
    const prompt = [...narrow.images!.place(image).tokenIds];
    const asked = narrow.createSequence().generate(prompt, { maxTokens: 1 });
    await expect(asked).rejects.toMatchObject({ code: "engine/context-exceeded" });
    expect([small, narrow].map(({ images }) => images!.stats().encoded)).toEqual([0, 0]);
  });

  it("may be a small file: a GIF of one frame of 20 x 20 pixels that claims 4,096 x 4,096", async () => {
    const gif = Buffer.from("R0lGODlhFAAUAIAAAP///wAAACwAAAAAFAAUAAACEYSPqcvtD6OctNqLs968+68VADs=", "base64");
    gif.writeUInt16LE(4096, 6);
    gif.writeUInt16LE(4096, 8);
    const model = await open({ contextSize: 4096 });
    const image = await loadImage({ bytes: gif });
    expect(image).toMatchObject({ width: 4096, height: 4096 });
    await expect(model.images!.prepare(image)).rejects.toMatchObject({ code: "engine/bad-image" });
    const prompt = [...model.images!.place(image).tokenIds];
    const asked = model.createSequence().generate(prompt, { maxTokens: 1 });
    await expect(asked).rejects.toMatchObject({ code: "engine/context-exceeded" });
    expect(model.images!.stats().encoded).toBe(0);
  });
});
