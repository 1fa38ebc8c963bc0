import type { DumpLine } from "@cria/records";
import { describe, expect, it } from "vitest";
import { alignText, countShared, readPrefix } from "./align-group.js";
import { listRoles, readBranch, splitConversation } from "./split-conversation.js";
import { makeTimeline } from "./timeline.js";

/** A line with the fields that these functions read. */
function makeLine(given: Partial<DumpLine>): DumpLine {
  return {
    ...{ messages: [], prompt_messages: 0, turns: [], spans: [], token_ids: [], response_mask: [] },
    ...{ tool_rewards: [], turn_scores: [] },
    ...given,
  } as Partial<DumpLine> as DumpLine;
}

it("names the roles that the policy played in a branch", () => {
  const turn = (start: number, end: number, request = {}) => ({
    role: "assistant" as const,
    start,
    end,
    call: { messages: 1, sibling: 0, request },
  });
  const segment = (start: number, end: number) => ({ start, end, parent: -1, messages: [] });
  const line = makeLine({
    segments: [segment(0, 4), segment(4, 9), segment(9, 12)],
    turns: [turn(2, 4, { role: "x" }), turn(5, 6, { role: "o" }), turn(7, 9, { role: "o" }), turn(10, 12)],
  });
  expect([0, 1, 2].map((i) => listRoles(line, i))).toEqual([["x"], ["o"], []]);
});

describe("a conversation as a chat", () => {
  const call = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>';
  const line = makeLine({
    messages: [
      { role: "user", content: "1 + 1? <tool_call>no call of the user</tool_call>" },
      { role: "assistant", content: `<think>hm</think>So: ${call}<tool_call>{"name": 3</tool_call>` },
      { role: "tool", name: "add", content: "2" },
      { role: "tool", content: "broken" },
      {
        role: "assistant",
        content: "2",
        tool_calls: [{ id: "1", type: "function", function: { name: "x", arguments: "{" } }],
      },
    ],
    prompt_messages: 1,
    turns: [
      { role: "assistant", start: 4, end: 8 },
      { role: "tool", start: 8, end: 10, failures: [null, "timeout"] },
      { role: "assistant", start: 10, end: 12 },
    ],
    tool_rewards: [{ value: 0.5, token_index: 7 }],
    turn_scores: [{ value: -1, token_index: 11 }],
  });

  it("has thinking, calls that can be read and calls that cannot", () => {
    const shown = splitConversation(line);
    expect(shown[0]!.parts).toEqual([{ kind: "text", text: "1 + 1? <tool_call>no call of the user</tool_call>" }]);
    expect(shown[1]!.parts).toEqual([
      { kind: "thinking", text: "hm" },
      { kind: "text", text: "So:" },
      { kind: "call", name: "add", arguments: '{\n  "a": 1\n}', valid: true },
      { kind: "call", name: "", arguments: '{"name": 3', valid: false },
    ]);
    expect(shown[4]!.parts[1]).toEqual({ kind: "call", name: "x", arguments: "{", valid: false });
  });

  it("shows lists of numbers on a line, and texts as they are", () => {
    const args = { bbox_2d: [0, -1.5, 2e-7], deep: [[1], ["2"], []], text: "[\n  1,\n  2\n]" };
    const content = `<tool_call>${JSON.stringify({ name: "zoom", arguments: args })}</tool_call>`;
    const [shown] = splitConversation(makeLine({ messages: [{ role: "assistant", content }] }));
    const [call] = shown!.parts;
    if (call?.kind !== "call") throw new Error("no call");
    expect(call.arguments).toContain(
      '"bbox_2d": [0, -1.5, 2e-7],\n  "deep": [\n    [1],\n    [\n      "2"\n    ],\n    []',
    );
    expect(JSON.parse(call.arguments)).toEqual(args);
  });

  it("has images between the texts of others", () => {
    const image = { hash: "ab", width: 3, height: 4, mimeType: "image/png" as const };
    const content = [
      { type: "text" as const, text: "This: " },
      { type: "image" as const, image },
      { type: "image" as const, image: { path: "lost.png" } },
    ];
    const [shown] = splitConversation(makeLine({ messages: [{ role: "user", content }] }));
    expect(shown!.parts).toEqual([
      { kind: "text", text: "This:" },
      { kind: "image", image },
      { kind: "text", text: "[image]" },
    ]);
    const failed = { role: "tool" as const, content: [{ type: "text" as const, text: "error: none" }, content[1]!] };
    expect(splitConversation(makeLine({ messages: [failed] }))[0]!.failure).toBe("error");
  });

  it("says which answers are failures, and where step rewards landed", () => {
    const shown = splitConversation(line);
    expect(shown.map(({ failure }) => failure)).toEqual([null, null, null, "timeout", null]);
    expect(shown.map(({ rewards }) => rewards.map(({ value }) => value))).toEqual([[], [0.5], [], [], [-1]]);
    expect(shown[4]!.turn).toMatchObject({ start: 10 });
  });

  it("of an older dump takes answers that begin like errors for failures", () => {
    const old = { ...line, turns: [], messages: [{ role: "tool" as const, content: "error: no such tool" }] };
    expect(splitConversation({ ...old, prompt_messages: 0 })[0]!.failure).toBe("error");
  });

  it("of an agent with branches is read down to one of them; a circle of parents ends", () => {
    const say = (content: string) => [{ role: "user" as const, content }];
    const segment = (parent: number, text: string) => ({ start: 0, end: 1, parent, messages: say(text) });
    const tree = makeLine({ segments: [segment(-1, "a"), segment(0, "b"), segment(0, "c"), segment(2, "d")] });
    expect(readBranch(tree, 3).map(({ content }) => content)).toEqual(["a", "c", "d"]);
    expect(readBranch(makeLine({ segments: [segment(1, "a"), segment(0, "b")] }), 0)).toHaveLength(2);
  });
});

describe("conversations of a group", () => {
  const make = (ids: number[], texts: string[], ends = true): DumpLine => {
    let end = 0;
    const span = { start: 0, mask: 1 as const, text: texts.join("") };
    return makeLine({
      token_ids: ids,
      spans: [ends ? { ...span, ends: texts.map((text) => (end += text.length)) } : span],
    });
  };
  const a = make([1, 2, 3, 4], ["x", "yy", "z", "w"]);
  const b = make([1, 2, 5], ["x", "yy", "q"]);
  const c = make([1, 2, 3, 6], ["x", "yy", "z", "v"]);

  it("begin with the tokens of all", () => {
    expect(countShared([a, b, c])).toBe(2);
    expect(readPrefix(a, 2)).toBe("xyy");
    expect(countShared([])).toBe(0);
  });

  it("show an image as a word, and differ where they show another", () => {
    const see = (hash: string): DumpLine => ({
      ...make([1, -1, -1, 4], ["x", "yy", "z", "w"]),
      images: [{ hash, width: 3, height: 4, mime_type: "image/png", start: 1, length: 2 }],
      spans: [
        { start: 0, mask: 0, text: "x", ends: [1] },
        { start: 1, mask: 0, text: "<end>", image: 0 },
        { start: 3, mask: 1, text: "w", ends: [1] },
      ],
    });
    expect(countShared([see("aa"), see("aa")])).toBe(4);
    expect(countShared([see("aa"), see("bb")])).toBe(1);
    expect(readPrefix(see("aa"), 4)).toBe("x[image 3 × 4, aa]w");
    expect(alignText(see("bb"), 1, see("aa"))).toEqual([
      { same: false, sampled: false, text: "[image 3 × 4, bb]" },
      { same: false, sampled: true, text: "w" },
    ]);
  });

  it("are cut at the first difference from the compared one", () => {
    expect(alignText(c, 2, a)).toEqual([
      { same: true, sampled: true, text: "z" },
      { same: false, sampled: true, text: "v" },
    ]);
    expect(alignText(b, 2, a)).toEqual([{ same: false, sampled: true, text: "q" }]);
    expect(alignText(make([1, 2, 3, 6], ["x", "yy", "z", "v"], false), 2, a)).toEqual([
      { same: false, sampled: true, text: "xyyzv" },
    ]);
  });
});

describe("a conversation over time", () => {
  it("has the turns, and waiting between them", () => {
    const turns: DumpLine["turns"] = [
      { role: "assistant", start: 0, end: 10, started_at: 1100, ended_at: 1200 },
      { role: "tool", start: 10, end: 12, started_at: 1250, ended_at: 1300 },
    ];
    const loop_states = [{ state: "pending", at: 1000 }] as DumpLine["loop_states"];
    expect(makeTimeline(makeLine({ turns, loop_states }))).toEqual([
      { title: "waiting", kind: "waiting", start: 0, end: 100, tokens: 0 },
      { title: "generation", kind: "generation", start: 100, end: 200, tokens: 10 },
      { title: "waiting", kind: "waiting", start: 200, end: 250, tokens: 0 },
      { title: "tools", kind: "tool", start: 250, end: 300, tokens: 2 },
    ]);
    expect(makeTimeline(makeLine({ turns: [{ role: "tool", start: 0, end: 1 }] }))).toBeNull();
  });
});
