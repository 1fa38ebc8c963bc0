import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Trajectory } from "@cria/core";
import { makeFakeRollout, makeRow } from "@cria/rollout/testing";
import { BaseTool, defineToolSchema } from "@cria/tools";
import { afterAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { describeTrajectories } from "./describe-trajectories.js";
import type { DumpLine } from "./dump-line.js";
import { readDump } from "./read-dump.js";

const folder = mkdtempSync(join(tmpdir(), "cria-dump-"));
afterAll(() => rmSync(folder, { recursive: true }));
const fixtures = join(import.meta.dirname, "..", "..", "fixtures", "dumps");

async function read(file: string): Promise<DumpLine[]> {
  const lines: DumpLine[] = [];
  for await (const line of readDump(file)) lines.push(line);
  return lines;
}

class SearchTool extends BaseTool {
  constructor() {
    super(defineToolSchema("search", "Searches.", z.object({ query: z.string() })));
  }
  override async execute(_id: string, { query }: { query?: string }) {
    if (query === "down") throw new Error("offline");
    return { response: { text: `found ${query}` }, reward: 0.5, metrics: {} };
  }
}

const call = (name: string, query: string) =>
  `<tool_call>{"name": "${name}", "arguments": {"query": "${query}"}}</tool_call>`;
const turns = [`${call("search", "ok")}${call("search", "down")}${call("find", "x")}`, call("search", "again"), "done"];

/** Two samples of two rows, as the lines of a dump. */
async function makeLines(given: Partial<Parameters<typeof makeFakeRollout>[0]> = {}) {
  const tools = [new SearchTool()];
  const { engine, options, run } = makeFakeRollout({
    reply: ({ turn }) => turns[turn]!,
    tools,
    n: 2,
    multiTurn: { maxParallelCalls: 2 },
    reward: () => ({ score: 0.25, format: 1 }),
    ...given,
  });
  const truth = { reward_model: { ground_truth: { answer: 7n, raw: Uint8Array.of(1, 2) } } };
  const rows = [0, 1].map((i) => ({ ...makeRow(truth, i), place: `/some/where/rows.jsonl, line ${i + 1}` }));
  const trajectories = await run(rows);
  const context = { step: 3, rows, tools: options.tools, engine };
  const advantages = [0.5, -0.5, null, 0];
  return { engine, trajectories, lines: describeTrajectories(trajectories, { ...context, advantages }) };
}

describe("a dump", () => {
  it("has a conversation's row, ground truth, judges and advantage", async () => {
    const { lines } = await makeLines();
    expect(lines.map(({ uid, sample, row, step, advantage }) => [uid, sample, row, step, advantage])).toEqual([
      ["test/0", 0, 0, 3, 0.5],
      ["test/0", 1, 0, 3, -0.5],
      ["test/1", 0, 1, 3, null],
      ["test/1", 1, 1, 3, 0],
    ]);
    for (const line of lines) {
      expect(line).toMatchObject({ format_version: 4, data_source: "test", prompt_messages: 1, tools: ["search"] });
      // Not the folder: a copy of the data gives the same dump.
      expect(line.place).toMatch(/^rows\.jsonl, line [12]$/);
      // JSON has neither integers of any size nor bytes.
      expect(line.ground_truth).toEqual({ answer: "7", raw: "AQI=" });
      expect(line.parts).toEqual([{ name: "score", value: 0.25, weight: 1, by: "the reward function" }]);
      expect(line.extra).toMatchObject({ format: 1 });
      // Two answers of the tool earned something.
      expect(line.reward).toBeCloseTo(0.25 + 2 * 0.5, 12);
    }
  });

  it("describes each tool once, in the first line that has it", async () => {
    const { lines } = await makeLines();
    expect(lines.map((line) => line.tool_schemas.map((schema) => schema.function.name))).toEqual([
      ["search"],
      [],
      [],
      [],
    ]);
  });

  it("has the whole text, cut at masks and turns, and says why calls failed", async () => {
    const { engine, trajectories, lines } = await makeLines();
    for (const [i, line] of lines.entries()) {
      const { tokenIds, responseMask } = trajectories[i]!;
      expect(line.spans.map((span) => span.text).join("")).toBe(engine.detokenize(tokenIds));
      line.spans.forEach(({ start, mask, text, ends }, k) => {
        const end = line.spans[k + 1]?.start ?? tokenIds.length;
        expect([...responseMask.subarray(start, end)]).toEqual(Array(end - start).fill(mask));
        // The text of each token, by itself.
        const texts = ends!.map((at, t) => text.slice(ends![t - 1] ?? 0, at));
        expect(texts).toEqual([...tokenIds.subarray(start, end)].map((id) => engine.detokenize([id])));
      });
      expect(line.turns.map(({ role, failures }) => [role, failures])).toEqual([
        ["assistant", undefined],
        ["tool", [null, "exception", "too_many_calls"]],
        ["assistant", undefined],
        ["tool", [null]],
        ["assistant", undefined],
      ]);
      // When turns were taken differs from run to run: dumps of a resumed training equal those of one that was never interrupted.
      expect(JSON.stringify(line)).not.toMatch(/_at"|"loop_states"/);
      expect(line.metrics).toMatchObject({ tool_errors: 1, "tool_errors/search": 1, "tool_answers/search": 2 });
    }
  });

  it("has the values of each token with full detail, and null for values that were not computed", async () => {
    const { engine, trajectories } = await makeLines();
    const context = { step: 1, rows: [], tools: new Map(), engine };
    const all = (value: number) => Float32Array.from(trajectories[0]!.tokenIds, () => value);
    const tokenDetails = trajectories.map((_, i) => ({
      oldLogprobs: i === 0 ? all(-0.1234567) : null,
      refLogprobs: null,
      advantages: i === 0 ? all(0.5) : null,
      entropy: null,
    }));
    const lines = describeTrajectories(trajectories, { ...context, tokenDetails, times: true });
    const { length } = trajectories[0]!.tokenIds;
    expect(lines[0]).toMatchObject({
      old_logprobs: Array(length).fill(-0.123457),
      ref_logprobs: null,
      advantages: Array(length).fill(0.5),
      entropy: null,
    });
    expect(lines[1]).toMatchObject({ old_logprobs: null, advantages: null });
    expect(lines[0]!.turns[0]!.started_at).toBeGreaterThan(0);
    expect(describeTrajectories(trajectories, context)[0]).not.toHaveProperty("old_logprobs");
  });

  it("has no reward for failed conversations, and no truth for unknown rows", async () => {
    const { lines } = await makeLines({ reward: () => Number.NaN });
    for (const line of lines) expect(line).toMatchObject({ reward: null, score: null, parts: [], error: /./ });
    const { trajectories, engine } = await makeLines();
    const context = { step: null, rows: [], tools: new Map(), engine };
    const [line] = describeTrajectories(trajectories as Trajectory[], context);
    expect(line).toMatchObject({ ground_truth: null, place: null, prompt_messages: 1, tools: [], advantage: null });
  });
});

describe("readDump", () => {
  it("gives back what was written", async () => {
    const { lines } = await makeLines();
    const file = join(folder, "new.jsonl");
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    expect(await read(file)).toEqual(JSON.parse(JSON.stringify(lines)));
  });

  it("reads dumps of version 1, of trainings and of cria rollout", async () => {
    for (const [name, count] of [
      ["version-1-train.jsonl", 6],
      ["version-1-rollout.jsonl", 2],
    ] as const) {
      const file = join(fixtures, name);
      const given = readFileSync(file, "utf8").trim().split("\n");
      const lines = await read(file);
      expect(lines).toHaveLength(count);
      lines.forEach((line, i) => {
        const { metrics, ...old } = JSON.parse(given[i]!);
        expect(line).toMatchObject(old);
        expect(line).toMatchObject({
          format_version: 4,
          step: null,
          ground_truth: null,
          parts: [],
          spans: [],
          advantage: null,
        });
        expect(line.messages[line.prompt_messages]!.role).toBe("assistant");
        expect(line.messages[line.prompt_messages - 1]!.role).not.toBe("assistant");
        expect(line.metrics).toEqual(metrics);
      });
    }
  });

  it("reads dumps of version 2, of trainings and of cria rollout", async () => {
    for (const [name, count] of [
      ["version-2-train.jsonl", 4],
      ["version-2-rollout.jsonl", 2],
    ] as const) {
      const file = join(fixtures, name);
      const lines = await read(file);
      expect(lines).toHaveLength(count);
      const given = readFileSync(file, "utf8").trim().split("\n");
      for (const [i, line] of lines.entries()) expect(line).toEqual({ ...JSON.parse(given[i]!), format_version: 4 });
    }
  });

  it("passes over a last line that was cut short, in the middle of a character too; any other bad line is an error", async () => {
    const whole = readFileSync(join(fixtures, "version-1-train.jsonl"));
    const file = join(folder, "cut.jsonl");
    const lines = whole.toString().split("\n");
    lines[1] = JSON.stringify({ ...JSON.parse(lines[1]!), uid: "ü\u2028ü" });
    const bytes = Buffer.from(lines.slice(0, 2).join("\n"));
    for (const cut of [1, 50, bytes.length - bytes.indexOf("ü") - 1]) {
      writeFileSync(file, bytes.subarray(0, bytes.length - cut));
      expect(await read(file)).toHaveLength(1);
    }
    // A line separator of Unicode ends no line.
    writeFileSync(file, bytes);
    expect((await read(file)).map((line) => line.uid)[1]).toBe("ü\u2028ü");
    appendFileSync(file, "\n{oh\n");
    await expect(read(file)).rejects.toMatchObject({
      code: "data/bad-dump",
      subject: expect.stringMatching(/cut\.jsonl, line 3$/),
      received: expect.stringContaining("{oh"),
    });
  });

  it("refuses a file that is not a dump", async () => {
    const file = join(folder, "other.jsonl");
    for (const [text, code, received] of [
      ['{"prompt":[]}\n', "data/bad-dump", "messages"],
      ['{"messages":[{"role":"user"}],"token_ids":[],"response_mask":[]}\n', "data/bad-dump", "content"],
      ["[1]\n", "data/bad-dump", "object"],
      ["7\n", "data/bad-dump", "number"],
      ['{"format_version":5}\n', "data/dump-version", "5"],
    ] as const) {
      writeFileSync(file, text);
      await expect(read(file), text).rejects.toMatchObject({
        code,
        subject: expect.stringContaining("line 1"),
        received: expect.stringContaining(received),
      });
    }
    await expect(read(join(folder, "none.jsonl"))).rejects.toMatchObject({
      code: "data/unreadable",
      subject: expect.stringContaining("none.jsonl"),
    });
    writeFileSync(file, "");
    expect(await read(file)).toEqual([]);
  });

  it("reads no further than it is asked to", async () => {
    const file = join(folder, "lazy.jsonl");
    writeFileSync(file, `${readFileSync(join(fixtures, "version-1-train.jsonl"), "utf8")}no JSON\n`);
    const seen: string[] = [];
    for await (const { uid } of readDump(file)) if (seen.push(uid) === 6) break;
    expect(seen).toHaveLength(6);
    await expect(read(file)).rejects.toMatchObject({
      code: "data/bad-dump",
      subject: expect.stringContaining("line 7"),
    });
  });
});
