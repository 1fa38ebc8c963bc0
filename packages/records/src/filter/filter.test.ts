import { CriaError } from "@cria/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DumpLine } from "../dump/dump-line.js";
import { filterFields } from "./filter-fields.js";
import { parseFilter } from "./parse-filter.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

const line = {
  format_version: 3,
  step: 20,
  uid: "math/0:7",
  sample: 2,
  row: 7,
  place: null,
  data_source: "math",
  ground_truth: { answer: 42 },
  reward: 0.5,
  score: 0.75,
  success: false,
  parts: [{ name: "helpful", value: 0.25, weight: 2, by: "reward model helpful" }],
  rewards: { outcome: 0.75, length: -0.25, tools: 0, turns: 0, tool_score: null, interaction_score: null },
  extra: { format: 1, acc: false, "is-valid": true, note: "said No", list: [1] },
  advantage: -0.7,
  error: null,
  finish_reason: "length",
  num_turns: 4,
  messages: [
    { role: "user", content: "What is 6 * 7?" },
    { role: "assistant", content: "Calling" },
    { role: "tool", content: "error: unknown tool" },
    { role: "assistant", content: "It is 41" },
  ],
  prompt_messages: 1,
  tools: ["calculator"],
  tool_schemas: [],
  prompt_length: 3,
  token_ids: [1, 2, 3, 4, 5, 6, 7],
  response_mask: [0, 0, 0, 1, 1, 0, 1],
  token_level_rewards: [],
  rollout_logprobs: [],
  spans: [],
  turns: [],
  turn_scores: [],
  tool_rewards: [],
  metrics: { tool_calls: 3, tool_errors: 2, tool_unknown_tool: 1, "tool/calculator/slow": 4 },
} satisfies DumpLine as DumpLine;
const failed: DumpLine = { ...line, reward: null, score: null, success: null, error: "offline", advantage: null };
const holds = (source: string, of: DumpLine = line) => parseFilter(source)(of);
/** Error of a filter that is wrong. */
function refuse(source: string): CriaError {
  try {
    parseFilter(source, "--filter");
  } catch (error) {
    if (error instanceof CriaError) return error;
  }
  throw new Error(`accepted: ${source}`);
}

describe("filters", () => {
  it("know the difference of sampler and trainer, if the dump has it", () => {
    const detailed = {
      ...line,
      rollout_logprobs: line.token_ids.map(() => Math.log(0.5)),
      old_logprobs: line.token_ids.map((_, t) => Math.log(t === 4 ? 0.4 : 0.5)),
    };
    expect(["mismatch > 0.09", "mismatch > 0.11"].map((filter) => holds(filter, detailed))).toEqual([true, false]);
    expect(holds("mismatch == null")).toBe(true);
  });

  it.each([
    "reward<1",
    "reward<1 && tool_errors>0",
    "reward >= .5 && reward <= 5e-1 && !(reward > 0.5)",
    "advantage<-0.5",
    "step == 20 && step = 20 && step != 21",
    "length == 4 && sampled == 3 && prompt_length == 3 && turns == 4",
    "tool_calls == 3 && unknown_tools == 1 && invalid_calls == 0",
    "truncated && !failed && !success",
    'finish_reason == "length" && source != "code"',
    "uid == 'math/0:7' && sample == 2 && row == 7",
    'text ~ "ERROR" && text !~ "6 * 7" && prompt ~ "6 * 7" && answer == "It is 41"',
    'text ~ "error:\\u0020" || text ~ "unknown\\ tool"',
    "parts.helpful == 0.25 && parts.length < 0 && parts.format == 1 && parts.none == null",
    "extra.acc == 0 && !extra.acc && extra.is-valid && extra.note ~ 'no'",
    "metrics.tool/calculator/slow > 3",
    'ground_truth ~ "42"',
    "success == false && error == null",
    "extra.constructor == null && metrics.toString == null && parts.__proto__ == null",
    "reward > 1 || reward < 1 && step == 20",
    "(reward > 1 || reward < 1) && step == 20",
  ])("%s", (source) => expect(holds(source)).toBe(true));

  it.each([
    "reward > 0.5",
    "!(reward<1)",
    "reward > 1 || false",
    'text ~ "nothing"',
    "(reward<1 || true) && step == 21",
  ])("not %s", (source) => expect(holds(source)).toBe(false));

  it("a conversation without the value is neither less nor greater, and equal to null alone", () => {
    for (const source of ["reward < 1", "reward >= 0", "advantage > -1", "error !~ 'off'"])
      expect(holds(source, failed), source).toBe(false);
    for (const source of ["reward == null", "reward != 0", "failed", 'error ~ "off"'])
      expect(holds(source, failed), source).toBe(true);
  });

  it.each([
    ["reward<1 && tool_erors>0", "tool_erors", /perhaps tool_errors/],
    ["rewrd == 1", "rewrd", /perhaps reward/],
    ["xyzzy > 1", "xyzzy", /a field: reward, score,.*parts\.<name>/],
    ["reward<1 & failed", "&", /&&/],
    ["reward<1 and failed", "and", /&&/],
    ["reward<1 failed", "failed", /&&, \|\| or the end/],
    ["(reward<1", "", /\), which closes/],
    ["reward<1)", ")", /the end/],
    ["reward <", "", /a field, a number or a text/],
    ["", "", /a field, a number or a text/],
    ['text ~ "error', '"error', /the quote " that ends the text/],
    ["text ~ 3", "3", /a text \(3 is a number\)/],
    ["reward ~ 'x'", "reward", /reward is a number/],
    ['reward < "1"', '"1"', /a number \("1" is a text\)/],
    ["finish_reason == length", "length", /a text stands in quotes: "length"/],
    ["tool_errors", "tool_errors", /tool_errors > 0/],
    ["failed && text", "text", /text ~ "error"/],
    ["parts > 1", "parts", /parts\.<name>/],
    ["reward # 1", "#", /a field, a number/],
  ])("%s: the error points at %j", (source, place, expected) => {
    const error = refuse(source);
    expect(error).toMatchObject({
      code: "config/bad-filter",
      subject: "--filter",
      expected: expect.stringMatching(expected),
    });
    const [shown, marks] = error.message.split("\n").slice(2);
    expect(shown).toBe(`  received: ${source}`);
    const start = marks!.indexOf("^");
    expect(shown!.slice(start, start + marks!.trim().length)).toBe(place);
  });

  it("that are long or deep are refused, without a stack overflow", () => {
    const limit = (most: string) => {
      const expected = expect.stringContaining(most);
      return expect.objectContaining({ code: "config/bad-filter", subject: "filter", expected });
    };
    expect(() => holds("(".repeat(5000))).toThrow(limit("200"));
    expect(() => holds("!".repeat(9000))).toThrow(limit("200"));
    expect(() => holds(" ".repeat(20_000))).toThrow(limit("10000"));
    expect(holds(`${"!!".repeat(90)}failed`)).toBe(false);
    expect(holds(Array(1500).fill("true").join("&&"))).toBe(true);
  });

  it("show no control characters in errors", () => {
    for (const source of ["'a\u001b[2Jb'", "\u001b", "reward < '\u001b'", "parts.\u001b"]) {
      const refusal = refuse(source);
      expect(refusal.code).toBe("config/bad-filter");
      expect(refusal.message).not.toContain("\u001b");
    }
  });

  it("of names that every object has are refused as unknown fields", () => {
    for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty.x", "__proto__.x"])
      expect(() => parseFilter(`${name} == 1`)).toThrow(expect.objectContaining({ code: "config/bad-filter" }));
  });

  it("of any text give yes, no or the place of the mistake, and throw nothing else", () => {
    const words = fc.constantFrom(
      ...[
        "&&",
        "||",
        "!",
        "(",
        ")",
        "<",
        ">=",
        "==",
        "~",
        "reward",
        "parts.a",
        "text",
        '"x"',
        "'",
        "1.5",
        "-",
        "null",
        "é",
        "\u001b",
      ],
      ...filterFields.keys(),
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(words, { maxLength: 12 }).map((list) => list.join(" ")),
        ),
        (source) => {
          try {
            expect(typeof parseFilter(source)(line)).toBe("boolean");
          } catch (error) {
            expect(error).toMatchObject({ code: "config/bad-filter" });
            expect((error as Error).message).not.toContain("\u001b");
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("have the meaning of JavaScript's operators", () => {
    type Tree = { source: string; value: boolean };
    const number = fc.double({ noNaN: true, noDefaultInfinity: true });
    const leaf = fc.tuple(number, number, fc.constantFrom("<", "<=", ">", ">=", "==", "!=")).map(([a, b, op]): Tree => {
      const value = { "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a === b, "!=": a !== b }[op]!;
      return { source: `${a}${op}${b}`, value };
    });
    const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
      tree: fc.oneof(
        { depthSize: "small" },
        leaf,
        tie("tree").map(({ source, value }) => ({ source: `!(${source})`, value: !value })),
        fc
          .tuple(tie("tree"), tie("tree"))
          .map(([a, b]) => ({ source: `(${a.source}) && (${b.source})`, value: a.value && b.value })),
        fc.tuple(tie("tree"), tie("tree"), tie("tree")).map(([a, b, c]) => ({
          // Without parentheses: and binds tighter than or.
          source: `(${a.source}) || (${b.source}) && (${c.source})`,
          value: a.value || (b.value && c.value),
        })),
      ),
    }));
    fc.assert(
      fc.property(tree, ({ source, value }) => {
        fc.pre(source.length < 10_000);
        expect(holds(source)).toBe(value);
      }),
    );
  });
});
