import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { convertGsm8k, gsm8kShapes, loadDataset, readRecords, writeParquet } from "../internal.js";
import { readParquet } from "./read-parquet.js";

/** The error with this code, about a subject whose name holds the text. */
const refusal = (code: string, subject: string, more: object = {}) =>
  expect.objectContaining({ code, subject: expect.stringContaining(subject), ...more });

const root = join(import.meta.dirname, "..", "..", "..", "..");
const fixtures = join(root, "packages", "rollout", "fixtures", "parquet");
const sample = join(root, "examples", "gsm8k", "sample");
const folder = mkdtempSync(join(tmpdir(), "cria-parquet-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Values that pyarrow read or wrote, by fixtures/parquet/make_reference.py. Bytes are written as { bytes: base64 }. */
const readExpected = (name: string) =>
  JSON.parse(readFileSync(join(fixtures, name), "utf8"), (_, value) => {
    const keys = typeof value === "object" && value !== null ? Object.keys(value) : [];
    return keys.join() === "bytes" && typeof value.bytes === "string"
      ? new Uint8Array(Buffer.from(value.bytes, "base64"))
      : value;
  }) as Record<string, unknown>[];
const readValues = async (file: string) => (await readRecords(file)).map(({ value }) => value);

describe.each(gsm8kShapes)("GSM8K as Parquet, shape %s", (shape) => {
  it("is read by pyarrow, and is the file that it writes, byte for byte", async () => {
    const { train, test } = await convertGsm8k(sample, join(folder, shape), shape);
    expect([train.rows, test.rows]).toEqual([8, 4]);
    expect(readFileSync(test.file).equals(readFileSync(join(fixtures, `${shape}.parquet`)))).toBe(true);
    expect(await readValues(test.file)).toEqual(readExpected(`${shape}.json`));
  });

  it("comes back as rows with the shape's kwargs", async () => {
    const rows = await loadDataset([join(folder, shape, "train.parquet"), join(folder, shape, "test.parquet")]);
    expect(rows).toHaveLength(12);
    expect(new Set(rows.map((r) => r.uid)).size).toBe(12);
    const [first] = rows;
    expect(first).toMatchObject({ dataSource: "openai/gsm8k", agentName: "tool_agent", groundTruth: "72" });
    expect(first!.prompt.map((m) => m.role)).toEqual(["system", "user"]);
    expect(first!.prompt[1]!.content).toMatch(/^Natalia sold clips/);
    const { extraInfo } = first!;
    expect(extraInfo.need_tools_kwargs).toBe(shape === "tool");
    if (shape === "tool")
      expect(extraInfo.tools_kwargs!.calc_gsm8k_reward!.create_kwargs).toEqual({ ground_truth: "72" });
    else
      expect(extraInfo.interaction_kwargs).toEqual({
        name: "gsm8k",
        query: first!.prompt[1]!.content,
        ground_truth: "72",
      });
  });
});

describe("Parquet of other writers", () => {
  it.each(["snappy", "zstd", "gzip", "brotli", "lz4", "none"])("pyarrow with codec %s", async (codec) => {
    const file = join(fixtures, `pyarrow-${codec}.parquet`);
    expect(await readValues(file)).toEqual(readExpected("pyarrow.json"));
    // The first row has two images, and no place for them.
    await expect(loadDataset([file])).rejects.toThrow(
      refusal("data/bad-row", 'row 1, column "images"', {
        expected: expect.stringMatching(/^0 /),
        received: expect.stringMatching(/^2 /),
      }),
    );
    const rows = await loadDataset([file], { imageKey: "none" });
    expect(rows).toHaveLength(6);
    // Nulls that stand for missing keys are gone; nested ground truths are as they were.
    expect(rows[0]!.prompt).toEqual([
      { role: "system", content: "Søk 🔎" },
      { role: "user", content: "who wrote it?", name: "ann" },
    ]);
    expect(Object.keys(rows[0]!.extraInfo.tools_kwargs!)).toEqual(["search"]);
    expect(rows[0]!.extraInfo.index).toBe(2 ** 40);
    expect(rows[0]!.groundTruth).toEqual({ target: ["A. Author", "Author"] });
    expect(Object.keys(rows[1]!.extraInfo.tools_kwargs!)).toEqual(["calculator"]);
  });
});

describe("errors", () => {
  it("a damaged or cut Parquet file names the file", async () => {
    const good = readFileSync(join(fixtures, "tool.parquet"));
    const file = join(folder, "bad.parquet");
    for (const bytes of [good.subarray(0, 100), Buffer.from("PAR1"), Buffer.alloc(0)]) {
      writeFileSync(file, bytes);
      await expect(readRecords(file)).rejects.toThrow(refusal("data/unreadable", "bad.parquet"));
    }
  });

  // One byte or few of tool.parquet are others: [place, value].
  const mutants: Record<string, [number, number][]> = {
    "two columns, damaged both": [
      [3911, 199],
      [2088, 234],
      [1614, 149],
      [3682, 118],
    ],
    "a column's name, and another column's pages": [
      [1381, 197],
      [3655, 29],
      [860, 28],
    ],
    "a length that memory has not": [
      [2510, 140],
      [653, 126],
      [1542, 39],
      [2752, 75],
    ],
  };
  it.each(Object.entries(mutants))("%s: one error, and no promise rejects unheard", async (_, changes) => {
    await expect(readRecords(mutate(changes))).rejects.toMatchObject({ code: "data/unreadable" });
    // Node tells of a rejection that nobody heard after the microtasks: vitest fails the run of it.
    await new Promise(setImmediate);
  });

  it("a file that would never be read to its end is given up", async () => {
    await expect(readParquet(mutate([[42, 0]]), 300)).rejects.toThrow("0.3 s");
  });

  function mutate(changes: [number, number][]): string {
    const bytes = readFileSync(join(fixtures, "tool.parquet"));
    for (const [at, value] of changes) bytes[at] = value;
    const file = join(folder, "mutant.parquet");
    writeFileSync(file, bytes);
    return file;
  }

  it("a record that is not GSM8K names file and line, and leaves no file", async () => {
    const source = join(folder, "source");
    await writeParquet(join(source, "unrelated.parquet"), { a: "string" }, []);
    writeFileSync(
      join(source, "train.jsonl"),
      '{"question":"1?","answer":"#### 1"}\n{"question":"?","answer":"none"}\n',
    );
    await expect(convertGsm8k(source, join(folder, "none"), "tool")).rejects.toThrow(
      refusal("data/bad-row", "train.jsonl, line 2"),
    );
    expect(existsSync(join(folder, "none", "train.parquet"))).toBe(false);
    await expect(convertGsm8k(join(folder, "nowhere"), folder, "tool")).rejects.toThrow(
      refusal("data/unreadable", "train.jsonl"),
    );
  });
});
