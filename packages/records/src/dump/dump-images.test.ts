import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type ChatMessage, listImages, loadImage } from "@cria/core";
import { isLoaded } from "@cria/core/internal";
import { FakeEngine, fakeImageFile } from "@cria/core/testing";
import { startRollouts } from "@cria/rollout";
import { loadRow, showVectors } from "@cria/rollout/internal";
import { makeFakeRollout, makeRow } from "@cria/rollout/testing";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { tool } from "@cria/tools";
import { resolveToolFormat } from "@cria/tools/internal";
import { afterAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  DumpImages,
  type DumpLine,
  describeMessages,
  describeTrajectories,
  makeTrainingMessages,
  nameImageFile,
  readDump,
  restoreRow,
  writeDump,
  writeTrainingRows,
} from "../internal.js";
import { makeReadCalls, RecordedAnswers } from "../replay/recorded-answers.js";
import { readMessages } from "./dump-images.js";

const folder = mkdtempSync(join(tmpdir(), "cria-dump-images-"));
afterAll(() => rmSync(folder, { recursive: true }));

const asked = fakeImageFile(32, 16);
const zoomed = fakeImageFile(16, 16, 1);
const row = makeRow({ prompt: [{ role: "user", content: "<image>what?" }], images: [{ bytes: asked }] });
const look = tool({
  name: "look",
  description: "Looks.",
  inputSchema: z.object({}),
  execute: () => ({ text: "closer", image: [{ bytes: zoomed }] }),
});

/** A prompt with an image, a call, an answer with another, and a last word. */
async function record() {
  const rollout = makeFakeRollout({
    reply: ({ turn }) => (turn === 0 ? '<tool_call>{"name": "look", "arguments": {}}</tool_call>' : "a cat"),
    engine: { images: true },
    tools: [look],
    n: 2,
  });
  const trajectories = await rollout.run([row]);
  const { engine, options } = rollout;
  const lines = describeTrajectories(trajectories, { step: 1, rows: [row], tools: options.tools, engine });
  return { ...rollout, trajectories, lines };
}

async function read(file: string): Promise<DumpLine[]> {
  const lines: DumpLine[] = [];
  for await (const line of readDump(file)) lines.push(line);
  return lines;
}

const hash = (bytes: Uint8Array) => loadImage({ bytes }).then((image) => image.hash);
const images = (messages: readonly ChatMessage[]) =>
  messages.flatMap(({ content }) => listImages(content).map(({ image }) => image));

describe("a dump with images", () => {
  it("records the places of images, and holds each file once beside it", async () => {
    const { lines, trajectories, engine } = await record();
    const file = join(folder, "run", "1.jsonl");
    await writeDump(file, lines);
    const names = [`${await hash(asked)}.png`, `${await hash(zoomed)}.png`];
    expect(readdirSync(join(dirname(file), "images")).sort()).toEqual([...names].sort());
    const [line] = await read(file);
    const [t] = trajectories;
    const { vocabSize } = engine.info;
    expect(line!.images).toEqual([
      {
        hash: await hash(asked),
        width: 32,
        height: 16,
        mime_type: "image/png",
        start: t!.images![0]!.start,
        length: 4,
      },
      {
        hash: await hash(zoomed),
        width: 16,
        height: 16,
        mime_type: "image/png",
        start: t!.images![1]!.start,
        length: 3,
      },
    ]);
    expect(line!.token_ids).toEqual([...t!.tokenIds].map((id) => (id >= vocabSize ? -1 : id)));
    expect(line!.token_ids.filter((id) => id === -1)).toHaveLength(3);
    expect(line!.prompt_messages).toBe(1);
    const [text] = readFileSync(file, "utf8").split("\n");
    expect(JSON.parse(text!).messages[0].content).toEqual([
      { type: "image", image: { hash: await hash(asked), width: 32, height: 16, mime_type: "image/png" } },
      { type: "text", text: "what?" },
    ]);
    // An image's file name is its hash, so an existing file is not written again.
    const written = statSync(join(dirname(file), "images", names[0]!)).mtimeMs;
    await writeDump(join(dirname(file), "2.jsonl"), lines);
    expect(statSync(join(dirname(file), "images", names[0]!)).mtimeMs).toBe(written);
  });

  it("cuts its text at images, whose stretches name them", async () => {
    const { lines, engine, trajectories } = await record();
    const { spans, images: shown = [] } = lines[0]!;
    expect(spans.map(({ text }) => text).join("")).toBe(engine.detokenize(trajectories[0]!.tokenIds));
    const seen = spans.filter(({ image }) => image !== undefined);
    expect(seen.map(({ start, image, mask }) => [start, image, mask])).toEqual(
      shown.map(({ start }, i) => [start, i, 0]),
    );
    expect(seen.map(({ text }) => text)).toEqual(["<|image_start|><|image_end|>", "<|image_start|><|image_end|>"]);
    // Spans without an image have token ends.
    expect(spans.every(({ image, ends }) => (image === undefined) === (ends !== undefined))).toBe(true);
  });

  it("gives images back when they are asked for, and the tokens of another process", async () => {
    const { lines, trajectories } = await record();
    const file = join(folder, "back", "1.jsonl");
    await writeDump(file, lines);
    const [line] = await read(file);
    expect(images(line!.messages).some(isLoaded)).toBe(false);
    const files = new DumpImages(file);
    const filled = await files.fill(line!);
    expect(images(filled.messages)).toEqual(images(trajectories[0]!.messages));
    const other = new FakeEngine({ reply: () => "", images: true });
    // Other images came first there.
    const first = other.images!.place(await loadImage({ bytes: fakeImageFile(64, 64, 5) }));
    const placed = line!.images!.map(async ({ mime_type: mimeType, start, length, ...image }) => ({
      image: await files.load({ ...image, mimeType }),
      start,
      length,
    }));
    const shown = showVectors(line!.token_ids, await Promise.all(placed), other, "line");
    const tokenizer = DeltaTokenizer.forModel(other);
    const prompt = tokenizer.encodePrompt(filled.messages.slice(0, 1), [look.schema]);
    expect([...shown.subarray(0, prompt.length)]).toEqual([...prompt]);
    expect(first.tokenIds.some((id) => id >= other.info.vocabSize && shown.includes(id))).toBe(false);
    const finer = new FakeEngine({ reply: () => "", images: { patch: 8 } });
    const all = await Promise.all(placed);
    expect(() => showVectors(line!.token_ids, all, finer, "line")).toThrow(
      expect.objectContaining({
        code: "data/other-images",
        subject: "line",
        remedy: expect.stringContaining("model.mmproj"),
      }),
    );
    expect(() => showVectors(line!.token_ids, [], other, "line")).toThrow(
      expect.objectContaining({ code: "data/other-images", subject: expect.stringMatching(/^line, token \d+$/) }),
    );
  });

  it("describes an unreadable image only as an image", async () => {
    const { run, engine, options } = makeFakeRollout({ reply: () => "x", engine: { images: true } });
    const broken = { ...makeRow({ prompt: [{ role: "user", content: "<image>?" }], images: ["missing.png"] }), folder };
    const trajectories = await run([broken]);
    expect(trajectories[0]!.error).toMatch(/cannot be read/);
    const lines = describeTrajectories(trajectories, { step: 1, rows: [broken], tools: options.tools, engine });
    const file = join(folder, "broken", "1.jsonl");
    await writeDump(file, lines);
    const [line] = await read(file);
    expect(line!.messages[0]!.content).toEqual([
      { type: "text", text: "[image]" },
      { type: "text", text: "?" },
    ]);
    expect(await new DumpImages(file).fill(line!)).toEqual(line);
  });

  it("names a file that is missing or another one, and refuses names that are not hashes", async () => {
    const { lines } = await record();
    const file = join(folder, "gone", "1.jsonl");
    await writeDump(file, lines);
    const path = join(dirname(file), "images", `${await hash(asked)}.png`);
    const [line] = await read(file);
    writeFileSync(path, zoomed);
    await expect(new DumpImages(file).fill(line!)).rejects.toMatchObject({
      code: "data/bad-image",
      expected: expect.stringContaining(`${await hash(asked)}.png`),
      received: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    rmSync(path);
    await expect(new DumpImages(file).fill(line!)).rejects.toMatchObject({
      code: "data/bad-image",
      received: expect.stringContaining("ENOENT"),
    });
    const text = readFileSync(file, "utf8").replaceAll(await hash(asked), "../../etc/passwd");
    writeFileSync(file, text);
    await expect(read(file)).rejects.toMatchObject({ code: "data/bad-dump" });
  });

  it("is held again: the prompt of the dump, and its tools' answers", async () => {
    const { lines, engine, options, trajectories } = await record();
    const file = join(folder, "again", "1.jsonl");
    await writeDump(file, lines);
    const [line] = await read(file);
    const filled = await new DumpImages(file).fill(line!);
    const again = await loadRow(restoreRow(filled));
    const replay = {
      seed: line!.sampling!.seed,
      answers: new RecordedAnswers(filled, { readCalls: makeReadCalls(options, again) }),
    };
    const { conversations } = await startRollouts(engine, [again], { ...options, n: 1, replay: () => replay });
    expect([...conversations[0]!.tokenIds]).toEqual([...trajectories[0]!.tokenIds]);
    expect(conversations[0]!.images).toEqual(trajectories[0]!.images);
  });

  it("becomes rows for supervised training, with the rollout's tokens and paths of its images", async () => {
    const { lines, options } = await record();
    const { tokenizer, multiTurn } = options;
    const file = join(folder, "messages", "rows.jsonl");
    const given = { tokenizer, parse: resolveToolFormat(multiTurn.format).parse, schemas: [look.schema] };
    const made = makeTrainingMessages(lines[0]!, given);
    expect(made!.isExact).toBe(true);
    await writeTrainingRows(file, [made!.row]);
    const written = JSON.parse(readFileSync(file, "utf8"));
    const path = join("images", `${await hash(asked)}.png`);
    expect(written.messages[0].content[0]).toEqual({ type: "image", image: path });
    expect(readFileSync(join(dirname(file), path))).toEqual(Buffer.from(asked));
  });
});

it("an image's file has the extension of its type, and its record is read back", () => {
  const types = ["image/png", "image/jpeg", "image/webp", "image/bmp", "image/gif"] as const;
  const records = types.map((mimeType) => ({ hash: "a".repeat(64), width: 3, height: 5, mimeType }));
  const names = records.map((record) => nameImageFile(record).split(".")[1]);
  expect(names).toEqual(["png", "jpg", "webp", "bmp", "gif"]);
  const messages = records.map((image) => ({ role: "user" as const, content: [{ type: "image" as const, image }] }));
  expect(readMessages(JSON.parse(JSON.stringify(describeMessages(messages))))).toEqual(messages);
});
