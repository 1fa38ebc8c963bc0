import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ImageSource } from "@cria/core";
import { fakeImageFile } from "@cria/core/testing";
import { afterAll, describe, expect, it } from "vitest";
import { loadDataset, type ParseRowOptions, parseRow, writeParquet } from "../internal.js";

/** The error of a row, about a subject whose name holds the text. */
const refusal = (subject: string, more: object = {}) =>
  expect.objectContaining({ code: "data/bad-row", subject: expect.stringContaining(subject), ...more });

const folder = mkdtempSync(join(tmpdir(), "cria-image-rows-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const bytes = fakeImageFile(20, 10);
const text = (value: string) => ({ type: "text", text: value });
const show = (image: ImageSource) => ({ type: "image", image });

function read(more: object, options: ParseRowOptions = {}) {
  const row = { data_source: "test", reward_model: { ground_truth: 1 }, ...more };
  return parseRow(row, 0, "f, row 9", options).prompt.map(({ content }) => content);
}

const ask = (content: unknown) => ({ prompt: [{ role: "user", content }] });

describe("a row's images", () => {
  it("stand where its texts say <image>, in order, over all messages", () => {
    const prompt = [
      { role: "system", content: "Look." },
      { role: "user", content: "<image>left,<image> right" },
      { role: "user", content: "and <image>" },
    ];
    const images = [{ bytes, path: null }, { bytes: null, path: "b.png" }, "c.png"];
    expect(read({ prompt, images })).toEqual([
      "Look.",
      [show({ bytes }), text("left,"), show({ path: "b.png" }), text(" right")],
      [text("and "), show({ path: "c.png" })],
    ]);
  });

  it("are read in every form of the column, which may have another name, or one image alone", () => {
    const url = "data:image/png;base64,aGk=";
    const images = [bytes, url, { data: "aGk=", mimeType: "image/png" }, { image: "d.png" }];
    const content = "<image><image><image><image>";
    expect(read({ ...ask(content), pics: images }, { imageKey: "pics" })).toEqual([
      [bytes, url, { data: "aGk=", mimeType: "image/png" }, "d.png"].map((_, i) =>
        show([{ bytes }, { url }, { data: "aGk=", mimeType: "image/png" }, { path: "d.png" }][i]!),
      ),
    ]);
    expect(read({ ...ask("<image>?"), images: { bytes, path: "a.png" } })).toEqual([[show({ bytes }), text("?")]]);
  });

  it("stand in parts of messages, by themselves or as a place for the column's next", () => {
    const parts = [text("a <image>"), { type: "image" }, { type: "image_url", image_url: { url: "https://x.org/a" } }];
    const images = ["one.png", "two.png"];
    expect(read({ ...ask([...parts, { type: "image", image: bytes }]), images })).toEqual([
      [
        text("a "),
        show({ path: "one.png" }),
        show({ path: "two.png" }),
        show({ url: "https://x.org/a" }),
        show({ bytes }),
      ],
    ]);
    // Parquet writes a null where another part has a value.
    const nulls = [
      { type: "text", text: "a", image: null },
      { type: "image", text: null, image: { bytes: null, path: "a.png" } },
    ];
    expect(read(ask(nulls))).toEqual([[text("a"), show({ path: "a.png" })]]);
  });

  it("are none without a column: <image> is then a text like any other", () => {
    for (const images of [undefined, null, []])
      expect(read({ ...ask("what is <image>?"), images })).toEqual(["what is <image>?"]);
  });

  it("must be as many as their places", () => {
    const expectNumbers = (more: object, places: number, images: number) =>
      expect(() => read(more)).toThrow(
        refusal('f, row 9, column "images"', {
          expected: expect.stringMatching(new RegExp(`^${places} images`)),
          received: expect.stringMatching(new RegExp(`^${images} images`)),
        }),
      );
    expectNumbers({ ...ask("<image>"), images: ["a.png", "b.png"] }, 1, 2);
    expectNumbers({ ...ask("<image><image>"), images: ["a.png"] }, 2, 1);
    expectNumbers({ ...ask("?"), images: ["a.png"] }, 0, 1);
    expectNumbers(ask([{ type: "image" }]), 1, 0);
  });

  it("that are not images are named", () => {
    expect(() => read({ ...ask("<image>"), images: [7] })).toThrow(
      refusal('column "images"[0]', { received: expect.stringContaining("number") }),
    );
    expect(() => read({ ...ask("<image>"), images: [{ pixels: 1 }] })).toThrow(
      refusal('column "images"[0]', { received: expect.stringContaining("pixels") }),
    );
    expect(() => read(ask([{ type: "image", image: 7 }]))).toThrow(refusal('column "prompt.0.content'));
  });
});

describe("a file of rows with images", () => {
  const message = { list: { struct: { role: "string", content: "string" } } } as const;
  const fields = {
    data_source: "string",
    prompt: message,
    images: { list: { struct: { bytes: "bytes", path: "string" } } },
  } as const;
  const row = (images: unknown, content = "<image>?") => ({
    data_source: "s",
    prompt: [{ role: "user", content }],
    images,
  });

  it("may be Parquet, as datasets of Hugging Face have them", async () => {
    const file = join(folder, "rows.parquet");
    const images = [{ bytes, path: "a.png" }];
    await writeParquet(file, fields, [
      row(images),
      row([{ bytes: null, path: "b.png" }]),
      row([], "none"),
      row(null, "no"),
    ]);
    const rows = await loadDataset([file]);
    expect(rows.map(({ prompt }) => prompt[0]!.content)).toEqual([
      [show({ bytes }), text("?")],
      [show({ path: "b.png" }), text("?")],
      "none",
      "no",
    ]);
  });

  it("says where the paths of its images begin", async () => {
    const file = join(folder, "rows.jsonl");
    writeFileSync(file, `${JSON.stringify(row(["a.png"]))}\n${JSON.stringify(row([], "none"))}\n`);
    const [shown, told] = await loadDataset([file]);
    expect(shown!.folder).toBe(folder);
    expect(told).not.toHaveProperty("folder");
  });
});
