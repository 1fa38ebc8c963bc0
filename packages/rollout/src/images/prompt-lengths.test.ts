import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeEngine, fakeImageFile } from "@cria/core/testing";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { afterAll, describe, expect, it } from "vitest";
import { type DatasetRow, filterOverlongPrompts, loadRow, type MeasureOptions, measurePrompts } from "../internal.js";
import { makeRow } from "../testing/index.js";

const folder = mkdtempSync(join(tmpdir(), "cria-lengths-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const engine = new FakeEngine({ reply: () => "", images: true });
const tokenizer = DeltaTokenizer.forModel(engine);
const options: MeasureOptions = { engine, tokenizer, tools: new Map(), cacheFolder: null };
const ask = (image: unknown, content = "<image>?"): DatasetRow => ({
  ...makeRow({ prompt: [{ role: "user", content }], images: [image] }),
  folder,
});

describe("lengths of prompts with images", () => {
  it("are those of the conversations, though no image is placed", async () => {
    writeFileSync(join(folder, "a.png"), fakeImageFile(64, 48));
    const rows = [ask({ bytes: fakeImageFile(64, 64) }), ask("a.png", "first <image> then"), makeRow()];
    const loaded = await Promise.all(rows.map((row) => loadRow(row)));
    const fresh = new FakeEngine({ reply: () => "", images: true });
    const lengths = await measurePrompts(rows, {
      ...options,
      engine: fresh,
      tokenizer: DeltaTokenizer.forModel(fresh),
    });
    expect([...lengths]).toEqual(loaded.map(({ prompt }) => tokenizer.encodePrompt(prompt).length));
    expect(fresh.images!.find(fresh.info.vocabSize)).toBeUndefined();
  });

  it("decide which prompts are too long, as texts do", async () => {
    const rows = [ask({ bytes: fakeImageFile(64, 64) }), ask({ bytes: fakeImageFile(64, 80) })];
    const [least] = await measurePrompts(rows, options);
    expect(await filterOverlongPrompts(rows, least!, options)).toEqual([rows[0]]);
    await expect(filterOverlongPrompts(rows, 1, options)).rejects.toMatchObject({
      code: "data/empty",
      expected: expect.stringMatching(/ 1 tokens.*maxPromptLength/),
    });
  });

  it("of an image that cannot be read are those of the texts: it breaks its conversation for another reason", async () => {
    const texts = tokenizer.encodePrompt([{ role: "user", content: "?" }]).length;
    for (const image of [{ bytes: Uint8Array.of(1) }, "missing.png", { bytes: fakeImageFile(5000, 5000) }])
      expect([...(await measurePrompts([ask(image)], options))]).toEqual([texts]);
  });

  it("are kept by the sizes, the projector and its limits", async () => {
    const cacheFolder = join(folder, "cache");
    const entries = async (row: DatasetRow, given = engine) => {
      await measurePrompts([row], { ...options, engine: given, cacheFolder });
      return readdirSync(cacheFolder).length;
    };
    expect(await entries(ask({ bytes: fakeImageFile(64, 64) }))).toBe(1);
    expect(await entries(ask({ bytes: fakeImageFile(64, 64, 1) }))).toBe(1);
    expect(await entries(ask({ bytes: fakeImageFile(64, 65) }))).toBe(2);
    const finer = new FakeEngine({ reply: () => "", images: { patch: 8 } });
    expect(await entries(ask({ bytes: fakeImageFile(64, 64) }), finer)).toBe(3);
  });
});
