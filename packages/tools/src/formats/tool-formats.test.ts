import { makeUniform, type ToolSchema } from "@cria/core";
import { amount } from "@cria/core/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toolCallGrammar } from "../grammar/tool-call-grammar.js";
import { thinkingTags } from "../parsers/thinking.js";
import { defineToolSchema } from "../schema.js";
import type { TurnReader } from "../splitters/turn-reader.js";
import { sampleGrammar } from "../testing/sample-grammar.js";
import { findArgumentError } from "../validate-arguments.js";
import { findToolFormat, listToolFormats } from "./registry.js";
import type { ToolFormat } from "./tool-format.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

/** The parts of each format in the list must fit each other, so a new format needs no separate test of that. */
const formats = listToolFormats();

const tools: ToolSchema[] = [
  defineToolSchema("run", "", { type: "object", properties: { code: { type: "string" } }, required: ["code"] }),
  defineToolSchema("add", "", {
    type: "object",
    properties: { a: { type: "integer" }, note: { type: "string" }, isExact: { type: "boolean" } },
    required: ["a"],
  }),
];

/** Turns of calls that the format's grammar allows. */
const turnsOf = (format: ToolFormat, parallel = false) => {
  const grammar = toolCallGrammar(format, tools, { parallel })!;
  return fc.nat(2 ** 31).map((seed) => sampleGrammar(grammar, makeUniform(seed)));
};

function split(reader: TurnReader, pieces: Iterable<string>): { reasoning: string; text: string; end: number } {
  const spoken = { reasoning: "", text: "" };
  const splitter = reader.split((kind, text) => {
    spoken[kind] += text;
  });
  for (const piece of pieces) splitter.push(piece);
  return { ...spoken, end: splitter.finish() };
}

/** Index at which the first call may begin, -1 when there is none, and the text before it without the format's marks. */
function findStart({ candidate, look }: NonNullable<ToolFormat["callStart"]>, text: string) {
  let said = "";
  for (let at = 0; at < text.length; ) {
    const verdict = at === 0 || candidate.test(text[at]!) ? look(text, at, at === 0) : 1;
    if (verdict === "call") return { at, said };
    if (typeof verdict === "object") at += verdict.skip;
    else {
      const next = at + (verdict === "wait" ? text.length : verdict);
      said += text.slice(at, next);
      at = next;
    }
  }
  return { at: -1, said };
}

describe.each(formats.map((format) => [format.name, format] as const))("%s", (name, format) => {
  const prose = fc.constantFrom("", "I look.\n", "a < b [c] `d`\n");
  const isText = format.callStart !== null;

  it("has names that no other format has", () => {
    for (const each of [name, ...format.aliases]) {
      expect(findToolFormat(each)).toBe(format);
      expect(formats.filter((other) => other.name === each || other.aliases.includes(each))).toEqual([format]);
    }
  });

  if (format.detectionRank === 0)
    it("reads calls of no other format", () => {
      for (const other of formats.filter((each) => each !== format && each.grammar))
        fc.assert(
          fc.property(turnsOf(other), (turn) => {
            expect(format.parse(turn, tools).calls.filter((call) => call.error === undefined)).toEqual([]);
          }),
          { numRuns: amount(8, 20) },
        );
    });

  // Without a grammar no turns of it are known here.
  if (format.grammar === null) return;

  it.each([false, true])("reads back the texts of its grammar, parallel: %s", (parallel) => {
    fc.assert(
      fc.property(turnsOf(format, parallel), (turn) => {
        const { content, calls } = format.parse(turn, tools);
        // Only white space and separators stand between calls.
        expect(content).toMatch(parallel ? /^[\s;,]*$/ : /^$/);
        if (!parallel) expect(calls).toHaveLength(1);
        expect(calls.length).toBeGreaterThan(0);
        for (const call of calls) {
          expect(call.error).toBeUndefined();
          const tool = tools.find((each) => each.function.name === call.name)!;
          expect(findArgumentError(tool, call.arguments)).toBeNull();
        }
      }),
    );
  });

  it("holds back the call and all behind it, however the text is cut, and nothing else", () => {
    fc.assert(
      fc.property(turnsOf(format), prose, (turn, before) => {
        const text = (isText ? before : "") + turn;
        const whole = split(format, [text]);
        expect(split(format, text)).toEqual(whole);
        const { calls, content } = format.parse(text, tools);
        expect(format.parse(text.slice(whole.end), tools).calls).toEqual(calls);
        expect(whole.reasoning).toBe("");
        expect(whole.text.trim()).toBe(content.trim());
      }),
    );
  });

  if (isText)
    it("finds the start of the first call, and never rules it out before", () => {
      fc.assert(
        fc.property(turnsOf(format), prose, (turn, before) => {
          const text = before + turn;
          const { at, said } = findStart(format.callStart!, text);
          expect(said.trim()).toBe(before.trim());
          for (let end = at + 1; end < text.length; end++)
            expect(format.callStart!.look(text.slice(0, end), at, at === 0)).not.toBeTypeOf("number");
        }),
        { numRuns: amount(12, 30) },
      );
    });

  if (isText)
    it("takes a call inside of thinking for thinking", () => {
      fc.assert(
        fc.property(turnsOf(format), (turn) => {
          for (const { open } of thinkingTags) {
            const text = `${open}\n${turn}\n`;
            expect(format.parse(text, tools)).toMatchObject({ content: text, calls: [] });
            expect(split(format, text)).toMatchObject({ text: "", end: text.length });
          }
        }),
      );
    });

  it("finds no call without tools", () => {
    fc.assert(
      fc.property(turnsOf(format, true), (turn) => {
        const { withoutCalls } = format;
        const { end } = split(withoutCalls, turn);
        for (const text of [turn, turn.slice(end)]) expect(withoutCalls.parse(text).calls).toEqual([]);
      }),
    );
  });

  it("answers for every part of its turns, and for parts that are mixed", () => {
    const part = fc.tuple(turnsOf(format, true), fc.nat(), fc.nat()).map(([turn, from, to]) => {
      return turn.slice(from % (turn.length + 1)).slice(0, to % (turn.length + 1));
    });
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), (parts) => {
        const text = parts.join("");
        for (const call of format.parse(text, tools).calls)
          expect(call.error !== undefined || call.name !== "").toBe(true);
        const { end } = split(format, parts);
        expect(end).toBeLessThanOrEqual(text.length);
        expect(split(format, text).end).toBe(end);
      }),
    );
  });
});
