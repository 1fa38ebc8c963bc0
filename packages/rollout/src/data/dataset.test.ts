import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeEngine } from "@cria/core/testing";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { CalculatorTool } from "@cria/tools";
import { provideHostModules } from "@cria/tools/internal";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import {
  checkDatasetClass,
  DataLoader,
  type DataLoaderState,
  type DatasetRow,
  filterOverlongPrompts,
  fitPrompt,
  loadDataset,
  loadExport,
  type MeasureOptions,
  measurePrompts,
  parseRow,
} from "../internal.js";

/** The error with this code, about a subject whose name holds the text. */
const refusal = (code: string, subject: string, more: object = {}) =>
  expect.objectContaining({ code, subject: expect.stringContaining(subject), ...more });

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

const folder = mkdtempSync(join(tmpdir(), "cria-dataset-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const row = (content: string, more: Record<string, unknown> = {}) => ({
  data_source: "test",
  prompt: [{ role: "user", content }],
  reward_model: { style: "rule", ground_truth: content },
  extra_info: { index: 0 },
  ...more,
});
const write = (name: string, rows: readonly unknown[]): string => {
  const file = join(folder, name);
  writeFileSync(file, name.endsWith("l") ? rows.map((r) => `${JSON.stringify(r)}\n`).join("") : JSON.stringify(rows));
  return file;
};

describe("bytes that are not text", () => {
  const bytes = (name: string, ...parts: (string | number[])[]) => {
    const file = join(folder, name);
    writeFileSync(file, Buffer.concat(parts.map((part) => Buffer.from(part as string))));
    return loadDataset([file]);
  };

  it("in UTF-8 are an error that names line and byte, not characters that the policy would learn", async () => {
    const good = `${JSON.stringify(row("h\u00e9"))}\n`;
    await expect(bytes("bad.jsonl", good, '{"prompt": "caf', [0xe9], '"}\n')).rejects.toThrow(
      refusal("data/not-utf8", "bad.jsonl, line 2", { received: expect.stringContaining("byte 16") }),
    );
    await expect(bytes("bad.json", '["', [0xff], '"]')).rejects.toThrow(refusal("data/not-utf8", "bad.json, line 1"));
    // A replacement character that somebody wrote is a character.
    expect(await bytes("written.jsonl", `${JSON.stringify(row("\ufffd"))}\n`)).toHaveLength(1);
  });

  it("a value that is nested thousands of levels deep is a wrong value like others", async () => {
    const file = join(folder, "deep.jsonl");
    const nested = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    writeFileSync(file, `{"data_source": "test", "prompt": ${nested}}\n`);
    await expect(loadDataset([file])).rejects.toMatchObject({ code: "data/bad-row" });
  });

  it("at the start of a file, a byte order mark, are named", async () => {
    const text = `${JSON.stringify(row("a"))}\n`;
    await expect(bytes("bom.jsonl", [0xef, 0xbb, 0xbf], text)).rejects.toThrow(
      refusal("data/byte-order-mark", "bom.jsonl", { received: expect.stringContaining("UTF-8") }),
    );
    await expect(bytes("utf16.jsonl", [0xff, 0xfe], Array.from(Buffer.from(text, "utf16le")))).rejects.toThrow(
      refusal("data/byte-order-mark", "utf16.jsonl", { received: expect.stringContaining("UTF-16") }),
    );
  });
});

describe("rows", () => {
  it("of several files get uids that are unique and stable, even where extra_info.index repeats", async () => {
    const files = [
      write("a.jsonl", [row("x"), row("y")]),
      write("b.json", [row("x"), row("z", { data_source: "other" })]),
    ];
    const rows = await loadDataset(files);
    expect(rows.map((r) => r.uid)).toEqual(["test/0:0", "test/0:1", "test/1:0", "other/1:1"]);
    expect(rows.map((r) => r.index)).toEqual([0, 1, 2, 3]);
    expect(rows.map((r) => r.place.slice(folder.length + 1))).toEqual([
      "a.jsonl, line 1",
      "a.jsonl, line 2",
      "b.json, row 1",
      "b.json, row 2",
    ]);
    const fewer = await loadDataset(files, { maxSamples: 2, sampleSeed: 1 });
    for (const r of fewer) expect(r).toEqual(rows[r.index]);
  });

  it("data.train_max_samples takes the first, or with shuffling some that the seed decides", async () => {
    const file = write(
      "many.jsonl",
      Array.from({ length: 50 }, (_, i) => row(String(i))),
    );
    const take = async (sampleSeed: number | null) =>
      (await loadDataset([file], { maxSamples: 5, sampleSeed })).map((r) => r.index);
    expect(await take(null)).toEqual([0, 1, 2, 3, 4]);
    const [one, again, other] = [await take(1), await take(1), await take(2)];
    expect(one).toEqual(again);
    expect(one).not.toEqual(other);
    expect(one).toEqual([...one].sort((a, b) => a - b));
    expect(new Set(one).size).toBe(5);
  });

  it("columns by data.prompt_key and reward_fn_key", () => {
    const value = { ...row("q"), chat: [{ role: "user", content: "what is <image>?" }], source: "s" };
    const options = { promptKey: "chat", rewardFnKey: "source", position: "0:0" };
    const parsed = parseRow(value, 3, "f, row 1", options);
    expect(parsed).toMatchObject({ dataSource: "s", uid: "s/0:0" });
    // Without media it is a text like others.
    expect(parsed.prompt).toEqual([{ role: "user", content: "what is <image>?" }]);
  });

  it("with videos and sound are refused: a policy must not be trained to answer without seeing them", () => {
    const part = (type: string) => ({ prompt: [{ role: "user", content: [{ type: "text", text: "and" }, { type }] }] });
    const refused =
      (more: object, options = {}) =>
      () =>
        parseRow(row("q", { ...more }), 0, "f, row 9", options);
    for (const type of ["video", "audio"])
      expect(refused(part(type))).toThrow(refusal("data/bad-row", 'f, row 9, column "prompt.0.content"'));
    expect(refused({ videos: "a.mp4" })).toThrow(refusal("data/bad-row", 'column "videos"'));
    expect(refused({ clips: ["a.mp4"] }, { videoKey: "clips" })).toThrow(refusal("data/bad-row", 'column "clips"'));
    for (const none of [null, [], undefined]) expect(refused({ images: none, videos: none })).not.toThrow();
    expect(
      parseRow(row("q", { prompt: [{ role: "user", content: [{ type: "text", text: "a" }] }] }), 0, "f").prompt,
    ).toEqual([{ role: "user", content: "a" }]);
  });

  it("nulls that Parquet writes for missing keys are as if they were not there", () => {
    const parsed = parseRow(
      row("q", {
        prompt: [{ role: "user", content: "q", name: null, tool_calls: null }],
        extra_info: {
          index: 1,
          need_tools_kwargs: null,
          tools_kwargs: { calc: { create_kwargs: { a: 1 }, execute_kwargs: null }, search: null },
          interaction_kwargs: null,
        },
        agent_name: null,
        images: null,
      }),
      0,
      "f",
      { needToolsKwargs: true },
    );
    expect(parsed.prompt).toEqual([{ role: "user", content: "q" }]);
    expect(parsed.extraInfo.need_tools_kwargs).toBe(true);
    expect(Object.keys(parsed.extraInfo.tools_kwargs!)).toEqual(["calc"]);
    expect(parsed.extraInfo.tools_kwargs!.calc).toMatchObject({ create_kwargs: { a: 1 }, execute_kwargs: {} });
    expect(parsed.agentName).toBeUndefined();
  });

  it("that are malformed are errors with file, row, column and value", () => {
    for (const [value, column, more] of [
      [{ ...row("q"), chat: "hello" }, "chat", { received: '"hello"' }],
      [{ ...row("q"), chat: [] }, "chat", {}],
      [{ ...row("q"), chat: [{ role: "user", content: "q" }], data_source: 3 }, "data_source", { received: "3" }],
      [null, "row", {}],
    ] as const) {
      expect(() => parseRow(value, 1, "f, row 2", { promptKey: "chat" })).toThrow(
        refusal("data/bad-row", `f, row 2, column "${column}"`, more),
      );
    }
  });

  it("of messages without content are refused by row and message, but for calls without words", () => {
    const parse = (...messages: object[]) =>
      parseRow({ ...row("q"), prompt: [{ role: "user", content: "q" }, ...messages] }, 1, "f, row 2").prompt;
    const call = { type: "function", function: { name: "f", arguments: {} } };
    for (const message of [
      { role: "user" },
      { role: "user", content: null },
      { role: "tool", content: null, tool_calls: [call] },
      { role: "assistant" },
      { role: "assistant", content: null, tool_calls: [] },
      { role: "assistant", content: null, tool_calls: null },
    ])
      expect(() => parse(message), JSON.stringify(message)).toThrow(
        refusal("data/bad-row", 'f, row 2, column "prompt.1.content"', {
          expected: expect.stringContaining("tool_calls"),
          received: expect.stringMatching(/^(null|nothing)/),
        }),
      );
    for (const content of [{}, { content: null }, { content: "" }])
      expect(parse({ role: "assistant", ...content, tool_calls: [call], name: null })[1]).toEqual({
        role: "assistant",
        content: "",
        tool_calls: [call],
      });
    expect(parse({ role: "user", content: "" })[1]!.content).toBe("");
    expect(parse({ role: "user", content: [] })[1]!.content).toBe("");
  });
});

describe("semantic 7: prompts that are too long", () => {
  const ids = Int32Array.of(1, 2, 3, 4, 5, 6);

  it("follow data.truncation: the side named is cut away", () => {
    expect([...fitPrompt(ids, 6, "error", "row")]).toEqual([...ids]);
    expect([...fitPrompt(ids, 3, "left", "row")]).toEqual([4, 5, 6]);
    expect([...fitPrompt(ids, 3, "right", "row")]).toEqual([1, 2, 3]);
    expect([...fitPrompt(ids, 3, "middle", "row")]).toEqual([1, 5, 6]);
    expect([...fitPrompt(ids, 4, "middle", "row")]).toEqual([1, 2, 5, 6]);
    for (const side of ["left", "right", "middle"] as const) expect(fitPrompt(ids, 1, side, "row")).toHaveLength(1);
  });

  it("error names the row, the limit and the length", () => {
    expect(() => fitPrompt(ids, 5, "error", "row 7 (a.jsonl, line 8)")).toThrow(
      refusal("data/prompt-too-long", "row 7 (a.jsonl, line 8)", {
        expected: expect.stringMatching(/ 5 tokens.*maxPromptLength/),
        received: "6 tokens",
        remedy: expect.stringContaining("filter_overlong_prompts"),
      }),
    );
  });
});

describe("data.filter_overlong_prompts", () => {
  const engine = new FakeEngine({ reply: () => "" });
  const rows = Array.from({ length: 130 }, (_, i) => parseRow(row("x".repeat(i)), i, "f", { position: `0:${i}` }));
  /** Counts how many prompts were tokenized. */
  const prepare = (more: Partial<MeasureOptions> = {}) => {
    const inner = DeltaTokenizer.forModel(engine);
    const counter = { calls: 0, progress: [] as number[] };
    const options: MeasureOptions = {
      engine,
      tokenizer: {
        countPromptTokens: (...args) => {
          counter.calls++;
          return inner.countPromptTokens(...args);
        },
      },
      tools: new Map(),
      cacheFolder: null,
      onProgress: (done) => counter.progress.push(done),
      ...more,
    };
    return { counter, options };
  };

  it("keeps prompts that fit, template and tools counted, and reports its progress", async () => {
    const { counter, options } = prepare();
    const lengths = await measurePrompts(rows, options);
    const frame = lengths[0]!;
    expect([...lengths]).toEqual(rows.map((_, i) => frame + i));
    const kept = await filterOverlongPrompts(rows, frame + 9, options);
    expect(kept.map((r) => r.index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(counter.progress.slice(0, 3)).toEqual([64, 128, 130]);
    const withTools = prepare({ tools: new Map([["calculator", new CalculatorTool()]]) });
    expect((await measurePrompts(rows.slice(0, 1), withTools.options))[0]).toBeGreaterThan(frame + 100);
    await expect(filterOverlongPrompts(rows, 3, options)).rejects.toThrow(refusal("data/empty", "dataset of 130 rows"));
  });

  it("caches lengths by content, tokenizer and settings", async () => {
    const cacheFolder = join(folder, "cache");
    const measure = async (given: readonly DatasetRow[], more: Partial<MeasureOptions> = {}) => {
      const { counter, options } = prepare({ cacheFolder, ...more });
      const lengths = await measurePrompts(given, options);
      return { calls: counter.calls, lengths };
    };
    const first = await measure(rows);
    expect(first.calls).toBe(130);
    const second = await measure(rows);
    expect(second).toEqual({ calls: 0, lengths: first.lengths });
    // Each change that may affect a length measures again.
    expect((await measure(rows.slice(1))).calls).toBe(129);
    expect((await measure([parseRow(row("other"), 0, "f"), ...rows.slice(1)])).calls).toBe(130);
    expect((await measure(rows, { templateKwargs: { enable_thinking: false } })).calls).toBe(130);
    expect((await measure(rows, { tools: new Map([["calculator", new CalculatorTool()]]) })).calls).toBe(130);
    const otherTemplate = new FakeEngine({ reply: () => "", chatTemplate: "{{ messages[0].content }}" });
    expect((await measure(rows, { engine: otherTemplate })).calls).toBe(130);
    expect(readdirSync(cacheFolder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  it("a damaged cache is ignored and replaced; a folder that cannot be written is not an error", async () => {
    const cacheFolder = join(folder, "damaged");
    const { options } = prepare({ cacheFolder });
    const lengths = await measurePrompts(rows, options);
    const file = join(cacheFolder, readdirSync(cacheFolder)[0]!);
    const good = readFileSync(file);
    for (const bytes of [good.subarray(0, 100), Buffer.alloc(0), Buffer.from(good).fill(7, 60, 70)]) {
      writeFileSync(file, bytes);
      const { counter, options: again } = prepare({ cacheFolder });
      expect(await measurePrompts(rows, again)).toEqual(lengths);
      expect(counter.calls).toBe(130);
      expect(readFileSync(file)).toEqual(good);
    }
    const blocked = prepare({ cacheFolder: join(file, "below-a-file") });
    expect(await measurePrompts(rows, blocked.options)).toEqual(lengths);
  });

  it("an abort ends it", async () => {
    const controller = new AbortController();
    const { options } = prepare({ signal: controller.signal, onProgress: () => controller.abort(new Error("enough")) });
    await expect(measurePrompts(rows, options)).rejects.toThrow("enough");
  });
});

describe("the data loader", () => {
  const make = (count: number, batchSize: number, seed = 1, shuffle = true) =>
    new DataLoader(
      Array.from({ length: count }, (_, i) => ({ uid: `r${i}` })),
      { batchSize, shuffle, seed },
    );

  it("goes on exactly where it was saved, in the middle of an epoch too", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 6 }),
        fc.nat(12),
        fc.boolean(),
        (count, size, steps, shuffle) => {
          const loader = make(count, size, 3, shuffle);
          for (let i = 0; i < steps; i++) loader.next();
          const state = JSON.parse(JSON.stringify(loader.save())) as DataLoaderState;
          const resumed = make(count, size, 3, shuffle);
          resumed.restore(state);
          for (let i = 0; i < 8; i++) {
            expect(resumed.next()).toEqual(loader.next());
            expect(resumed.epoch).toBe(loader.epoch);
          }
        },
      ),
    );
  });

  it("hands each row out at most once an epoch, in an order of seed and epoch alone", () => {
    const loader = make(10, 3);
    const epochs = [0, 1].map(() => [0, 1, 2].flatMap(() => loader.next().map((r) => r.uid)));
    for (const epoch of epochs) expect(new Set(epoch).size).toBe(9);
    expect(epochs[0]).not.toEqual(epochs[1]);
    expect([0, 1, 2].flatMap(() => make(10, 3).next())).toHaveLength(9);
    expect(make(10, 3).next()).toEqual(make(10, 3).next());
    expect(make(10, 10, 2).next()).not.toEqual(make(10, 10, 1).next());
    expect(
      make(4, 4, 1, false)
        .next()
        .map((r) => r.uid),
    ).toEqual(["r0", "r1", "r2", "r3"]);
  });

  it("refuses a state of other rows, seeds or batch sizes", () => {
    const state = make(10, 2).save();
    const numbers = { expected: expect.stringMatching(/^11 /), received: expect.stringMatching(/^10 /) };
    expect(() => make(11, 2).restore(state)).toThrow(refusal("data/other-loader", "rows", numbers));
    expect(() => make(10, 3).restore(state)).toThrow(refusal("data/other-loader", "batchSize"));
    expect(() => make(10, 2, 9).restore(state)).toThrow(refusal("data/other-loader", "seed"));
    expect(() => make(10, 2, 1, false).restore(state)).toThrow(refusal("data/other-loader", "shuffle"));
    const others = new DataLoader(
      Array.from({ length: 10 }, (_, i) => ({ uid: `s${i}` })),
      { batchSize: 2, shuffle: true, seed: 1 },
    );
    expect(() => others.restore(state)).toThrow(refusal("data/other-loader", "uids"));
  });
});

describe("data.custom_cls", () => {
  const source = `
    import { RolloutDataset } from "@cria/rollout";
    interface Sum { a: number; b: number; skip?: boolean }
    export class Sums extends RolloutDataset {
      override mapRecord(record: Sum) {
        if (record.skip) return null;
        const content: string = \`\${record.a} + \${record.b}?\`;
        return { data_source: String(this.config["prefix"]), prompt: [{ role: "user", content }], reward_model: { ground_truth: record.a + record.b } };
      }
    }
    export const notOne = () => 1;
  `;

  it("is a TypeScript class without a build step", async () => {
    provideHostModules({ "@cria/rollout": await import("../index.js") });
    const module = join(folder, "sums.ts");
    writeFileSync(module, source);
    const datasetClass = checkDatasetClass(await loadExport(module, "Sums", "data.custom_cls"), "data.custom_cls");
    const file = write("sums.jsonl", [
      { a: 1, b: 2 },
      { a: 0, b: 0, skip: true },
      { a: 3, b: 4 },
    ]);
    const rows = await loadDataset([file], { datasetClass, config: { prefix: "sums" } });
    expect(rows.map((r) => [r.uid, r.prompt[0]!.content, r.groundTruth])).toEqual([
      ["sums/0:0", "1 + 2?", 3],
      ["sums/0:1", "3 + 4?", 7],
    ]);
    expect(rows[1]!.place).toMatch(/sums\.jsonl, line 3/);
    const other = await loadExport(module, "notOne", "data.custom_cls");
    expect(() => checkDatasetClass(other, "data.custom_cls")).toThrow(
      refusal("config/bad-value", "data.custom_cls", { received: "a function without a method load" }),
    );
    await expect(loadExport(module, "Nothing", "data.custom_cls")).rejects.toThrow(
      refusal("config/bad-value", "sums.ts#Nothing", { received: "Sums, notOne" }),
    );
    await expect(loadExport(join(folder, "none.ts"), "X", "data.custom_cls")).rejects.toThrow(
      refusal("config/unreadable", "none.ts"),
    );
  });
});
