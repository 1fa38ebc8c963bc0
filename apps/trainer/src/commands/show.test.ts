import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChatMessage, contentText } from "@cria/core";
import type { DumpLine } from "@cria/records";
import { runCommand as runCitty } from "citty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { showCommand } from "./show.js";

const output = captureOutput();
const work = mkdtempSync(join(tmpdir(), "cria-show-"));
const run = join(work, "runs", "p", "e");
afterAll(() => rmSync(work, { recursive: true }));

/** Runs the command in this process; returns its exit code. */
async function show(...rawArgs: string[]): Promise<number> {
  output.stdout = "";
  output.stderr = "";
  process.exitCode = undefined;
  await runCitty(showCommand, { rawArgs });
  return Number(process.exitCode ?? 0);
}

interface Shown {
  total: number;
  matched: number;
  conversations: (DumpLine & { file: string; group: (number | null)[] })[];
}

async function showJson(...rawArgs: string[]): Promise<Shown> {
  expect(await show(...rawArgs, "--json")).toBe(0);
  return JSON.parse(output.stdout) as Shown;
}

const schema = {
  type: "function" as const,
  function: { name: "search", parameters: { type: "object", properties: { query: {}, limit: {} } } },
};

/** A conversation of one call, whose tokens are the characters of its spans. */
function makeLine(more: Partial<DumpLine> = {}): DumpLine {
  const spans = [
    { start: 0, mask: 0 as const, text: "<|user|>Where?" },
    { start: 14, mask: 1 as const, text: "I look: " },
    { start: 22, mask: 0 as const, text: "<call>" },
    { start: 28, mask: 1 as const, text: "<|end|>" },
    { start: 35, mask: 0 as const, text: "<|tool|>error: gone" },
    { start: 54, mask: 1 as const, text: "Nowhere<|end|>" },
  ];
  const mask = spans.flatMap((span) => Array<number>(span.text.length).fill(span.mask));
  return {
    format_version: 3,
    step: 1,
    uid: "where/0:7",
    sample: 0,
    row: 7,
    place: "/data/rows.jsonl, line 8",
    data_source: "where",
    ground_truth: { city: "Ulm" },
    reward: -0.5,
    score: 0.25,
    success: false,
    parts: [
      { name: "rule", value: 0, weight: 0.5, by: "computeScore of reward.ts" },
      { name: "helpful", value: 0.125, weight: 2, by: "reward model helpful" },
    ],
    rewards: { outcome: 0.25, length: -1, tools: 0.25, turns: 0, tool_score: null, interaction_score: null },
    extra: { format: 1, helpful_verdict: "poor" },
    advantage: -0.7,
    error: null,
    finish_reason: "stop",
    num_turns: 4,
    messages: [
      { role: "user", content: "Where?" },
      { role: "assistant", content: "I look: <call>" },
      { role: "tool", name: "search", content: "error: gone" },
      { role: "assistant", content: "Nowhere" },
    ],
    prompt_messages: 1,
    tools: ["search"],
    tool_schemas: [schema],
    prompt_length: 14,
    token_ids: mask.map((_, i) => i),
    response_mask: mask,
    token_level_rewards: mask.map(() => 0),
    rollout_logprobs: mask.map(() => 0),
    spans,
    turns: [
      { role: "assistant", start: 14, end: 35, tool_calls: { count: 1, start: 22, end: 28 } },
      { role: "tool", start: 35, end: 54, failures: ["exception"] },
      { role: "assistant", start: 54, end: 68 },
    ],
    turn_scores: [],
    tool_rewards: [{ value: 0.25, token_index: 34 }],
    metrics: { tool_calls: 1, tool_errors: 1, tool_exception: 1 },
    ...more,
  };
}

function write(file: string, lines: readonly DumpLine[]): string {
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return file;
}

beforeAll(() => {
  const samples = [1, 0.5, null, -0.5].map((reward, sample) =>
    makeLine({ sample, reward, error: reward === null ? "offline" : null, tool_schemas: sample === 0 ? [schema] : [] }),
  );
  const other = makeLine({ uid: "where/0:8", reward: 2, success: true, tool_schemas: [] });
  for (const step of [1, 2, 3, 20])
    write(
      join(run, "rollouts", `${step}.jsonl`),
      [...samples, other].map((l) => ({ ...l, step })),
    );
  write(join(run, "validation", "20.jsonl"), [makeLine({ uid: "held/0:1", step: 20 })]);
  writeFileSync(join(run, "config.json"), JSON.stringify({ trainer: { rollout_data_dir: null } }));
});

describe("cria show", () => {
  it("draws a conversation: masks, calls and their errors, truth, the reward part by part, the group", async () => {
    const file = write(join(work, "one.jsonl"), [makeLine(), makeLine({ sample: 1, reward: 2, tool_schemas: [] })]);
    expect(await show(file, "--limit=1")).toBe(0);
    expect(output.stderr).toBe("");
    expect(
      `${output.stdout}`.replace(file, "one.jsonl").replace(/─{20,}/, "───"),
    ).toBe(`one.jsonl: 2 conversations, mean reward 0.750, success 0.000
▌ sampled, trained on   ┆ sampled, not trained on   ✗ a call that failed
── where/0:7 · sample 0 · step 1 ───
reward     -0.5   advantage -0.7
           = outcome 0.25 + length -1 + tools 0.25
           rule 0 × 0.5, by computeScore of reward.ts
           helpful 0.125 × 2, by reward model helpful
           told: format 1, helpful_verdict poor
group      [-0.5] 2
truth      {"city":"Ulm"}
ended by   stop; 4 turns, 54 tokens
tools      search(query, limit)
row        /data/rows.jsonl, line 8

user         Where?
assistant  ▌ I look:
           ┆ <call>
           ▌ <|end|>
             +0.25 step reward of a tool
✗ tool       search: exception
             error: gone
assistant  ▌ Nowhere<|end|>

1 of 2 shown: --limit 2 shows all of them
`);
    expect(await show(file, "--limit=1", "--raw")).toBe(0);
    expect(output.stdout).toContain(
      "  <|user|>Where?\n▌ I look:\n  <call>\n▌ <|end|>\n  <|tool|>error: gone\n▌ Nowhere<|end|>\n",
    );
  });

  it("names images by size and hash, says where their files lie, and how many tokens they take", async () => {
    const hash = "5e".repeat(32);
    const size = { hash, width: 64, height: 48, mime_type: "image/png" as const };
    const [user, ...others] = makeLine().messages;
    const content = [
      { type: "image", image: size },
      { type: "text", text: user!.content },
    ];
    const [prompt, ...spans] = makeLine().spans;
    const line = makeLine({
      messages: [{ role: "user", content } as unknown as ChatMessage, ...others],
      images: [{ ...size, start: 8, length: 6 }],
      spans: [{ start: 0, mask: 0, text: prompt!.text }, { start: 8, mask: 0, text: "<i>", image: 0 }, ...spans],
    });
    const file = write(join(work, "images.jsonl"), [line]);
    expect(await show(file)).toBe(0);
    expect(output.stdout).toContain("user         [image 64 x 48, 5e5e5e5e]Where?\n");
    const shown = output.stdout.replace(/\n {13}/g, "");
    expect(shown).toContain(`[image 64 x 48, 5e5e5e5e] ${join(work, "images", `${hash}.png`)}`);
    expect(await show(file, "--raw")).toBe(0);
    expect(output.stdout).toContain("  [image 64 x 48, 5e5e5e5e, 6 tokens]\n");
  });

  it("takes the newest step, another, or all; validations; one prompt; the worst; those of a filter", async () => {
    const steps = async (...given: string[]) => [
      ...new Set((await showJson(run, ...given)).conversations.map((c) => c.step)),
    ];
    expect(await steps()).toEqual([20]);
    expect(await steps("--step=2")).toEqual([2]);
    expect(await steps("--step=all", "--limit=99")).toEqual([1, 2, 3, 20]);
    expect((await showJson(run, "--validation")).conversations.map((c) => c.uid)).toEqual(["held/0:1"]);
    const prompt = await showJson(run, "--prompt=where/0:7");
    expect(prompt.conversations.map((c) => [c.sample, c.group])).toEqual(
      [0, 1, 2, 3].map((i) => [i, [1, 0.5, null, -0.5]]),
    );
    const rewards = async (...given: string[]) => (await showJson(run, ...given)).conversations.map((c) => c.reward);
    // Failed conversations are not ranked.
    expect(await rewards("--worst=2")).toEqual([-0.5, 0.5]);
    expect(await rewards("--worst=9")).toEqual([-0.5, 0.5, 1, 2, null]);
    expect(await rewards("--filter=reward<1 && tool_errors>0")).toEqual([0.5, -0.5]);
    expect(await rewards("--filter", "failed")).toEqual([null]);
    const { total, matched, conversations } = await showJson(run, "--filter=reward<1", "--limit=1");
    expect([total, matched, conversations.length]).toEqual([5, 2, 1]);
    // Each conversation has its schemas, whichever line described its tools.
    expect((await showJson(run, "--worst=1")).conversations[0]!.tool_schemas).toEqual([schema]);
    expect(await show(run, "--filter=reward>7")).toBe(0);
    expect(output.stdout).toMatch(/no conversation matches/);
  });

  it("lists the existing choices if one is missing", async () => {
    for (const [given, message] of [
      [[join(work, "nothing")], /nothing: /],
      [[run, "--step=7"], /expected: one of 1 to 3, 20\n.*step 7/],
      [[join(work, "runs")], /runs: [\s\S]*: .*runs\/p\/e/],
      [[run, "--step=seven"], /--step: [\s\S]*\ball\b/],
      [[run, "--worst=0"], /--worst: /],
      [[run, "--filter=rewrd<1"], /--filter: [\s\S]*perhaps reward\n.*rewrd<1\n +\^{5}\n/],
      [[join(run, "rollouts", "1.jsonl"), "--step=1"], /--step: [\s\S]*step == 20/],
      [[join(run, "config.json")], /config\.json, line 1: /],
    ] as const) {
      expect(await show(...given)).toBe(1);
      expect(output.stderr).toMatch(message);
    }
  });

  it("finds conversations in a folder that the config or another command names", async () => {
    const moved = join(work, "runs", "p", "moved");
    const elsewhere = join(work, "elsewhere");
    write(join(elsewhere, "4.jsonl"), [makeLine({ uid: "moved/0:1" })]);
    mkdirSync(moved);
    writeFileSync(join(moved, "config.json"), JSON.stringify({ trainer: { rollout_data_dir: elsewhere } }));
    expect((await showJson(moved)).conversations[0]!.uid).toBe("moved/0:1");
    expect((await showJson(elsewhere)).conversations[0]!.uid).toBe("moved/0:1");
    const alone = join(work, "runs", "p", "alone");
    write(join(alone, "trajectories.jsonl"), [makeLine({ uid: "alone/0:1" })]);
    expect((await showJson(alone)).conversations[0]!.uid).toBe("alone/0:1");
  });

  it("writes out control characters of texts, and keeps lines within 80 columns", async () => {
    const hostile = `\u001b[2J\u001b]0;owned\u0007\u009b31m\r\b\u202eexe.txt ${"漢字".repeat(60)} ${"x".repeat(300)} \ud800`;
    const messages = makeLine().messages.map((message) => ({ ...message, content: hostile, name: hostile }));
    const spans = makeLine().spans.map((span) => ({ ...span, text: hostile }));
    const lines = [
      makeLine({
        uid: hostile,
        place: hostile,
        data_source: hostile,
        ground_truth: hostile,
        error: hostile,
        messages,
        spans,
        tools: [hostile],
        extra: { [hostile]: hostile },
        parts: [{ name: hostile, value: 1, weight: 1, by: hostile }],
      }),
      makeLine({ uid: hostile, error: hostile, reward: null, messages, spans: [], turns: [] }),
    ];
    const file = write(join(work, "hostile.jsonl"), lines);
    for (const more of [[], ["--raw"]]) {
      expect(await show(file, ...more)).toBe(0);
      expect(output.stdout).toContain("\\x1b[2J\\x1b]0;owned\\x07\\x9b31m");
      expect(output.stdout).toContain("\\u202eexe.txt");
      expect(output.stdout.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Bidi_Control}\p{Cs}]/u);
      const columns = (text: string) =>
        [...text].reduce((sum, char) => sum + (/\p{Script=Han}/u.test(char) ? 2 : 1), 0);
      const shown = output.stdout.trim().split("\n").slice(1);
      expect(Math.max(...shown.map(columns))).toBeLessThanOrEqual(80);
    }
  });

  it("shows the values of dumps of version 1", async () => {
    const fixtures = join(import.meta.dirname, "..", "..", "..", "..", "packages", "records", "fixtures", "dumps");
    for (const name of ["version-1-train.jsonl", "version-1-rollout.jsonl"]) {
      expect(await show(join(fixtures, name), "--limit=99")).toBe(0);
      const first = JSON.parse(readFileSync(join(fixtures, name), "utf8").split("\n")[0]!) as DumpLine;
      const [word] = contentText(first.messages.find((message) => message.role === "assistant")!.content).split("\n");
      expect(output.stdout).toContain(`assistant  ▌ ${word}`);
      expect(output.stdout).toMatch(/^ {11}= outcome 1$/m);
    }
  });
});
