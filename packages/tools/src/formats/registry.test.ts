import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { toolCallGrammar } from "../grammar/tool-call-grammar.js";
import { argumentsOf, type TurnGrammar, writeCalls } from "../grammar/turn-grammar.js";
import { findMarks } from "../parsers/call-start.js";
import { defineToolSchema } from "../schema.js";
import {
  getToolFormat,
  loadToolFormat,
  registerToolFormat,
  registerToolParser,
  resolveToolFormat,
} from "./registry.js";
import { defineToolFormat, type ToolFormatParts } from "./tool-format.js";

const folder = mkdtempSync(join(tmpdir(), "cria-formats-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const parse: ToolFormatParts["parse"] = (text) => ({ content: "", calls: [{ name: text, arguments: {} }] });
const tools = [defineToolSchema("add", "", { type: "object", properties: {} })];

const grammar: TurnGrammar = (turn) => writeCalls(turn, (tool) => `"ADD" ${argumentsOf(turn.writer, tool)}`);

describe("a user's format", () => {
  it("may be a parser: any text after the first thoughts may then be a call, and there is no grammar", () => {
    const format = resolveToolFormat(parse);
    expect(format).toMatchObject({ aliases: [], grammar: null, detectionRank: 0 });
    expect(format.parse("<think>a</think>b")).toEqual({
      content: "<think>a</think>",
      calls: [{ name: "b", arguments: {} }],
    });
    expect(format.callStart!.look("b", 0, true)).toBe("call");
    expect(toolCallGrammar(format, tools)).toBeNull();
  });

  it("may be whole: registered, or named by module and export", async () => {
    registerToolFormat({ name: "shout", aliases: ["SHOUT"], parse, callStart: findMarks(["ADD"]), grammar });
    expect(getToolFormat("SHOUT")).toBe(getToolFormat("shout"));
    expect(toolCallGrammar("SHOUT", tools)).toMatch(/^root ::= call\n[\s\S]*\ncall-add ::= "ADD" [\w-]+\n/);
    const spoken: string[] = [];
    getToolFormat("shout")
      .split((_, text) => spoken.push(text))
      .push("I AD");
    expect(spoken.join("")).toBe("I ");
    const source = `const parse = (text: string) => ({ content: text, calls: [] });
export const whole = { parse, grammar: () => '"ADD"' };
export const wrong = { parse, callStart: 3 };`;
    writeFileSync(join(folder, "mine.ts"), source);
    const loaded = await loadToolFormat("./mine.ts#whole", folder);
    expect(loaded).toMatchObject({ name: "./mine.ts#whole", aliases: [] });
    // The user's parser sees the thoughts, as the built-in parsers do.
    expect(loaded.parse("<think>a")).toEqual({ content: "<think>a", calls: [] });
    expect(toolCallGrammar(loaded, tools)).toBe('root ::= "ADD"\n');
    await expect(loadToolFormat("./mine.ts#wrong", folder)).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "defineToolFormat: callStart",
    });
  });

  it("may replace a built-in one, under all of its names", () => {
    const before = getToolFormat("deepseek_v3");
    registerToolParser("deepseek_v3", parse);
    expect(getToolFormat("deepseek_v31")).toBe(getToolFormat("deepseek_v3"));
    expect(getToolFormat("deepseek_v31").parse("x").calls).toEqual([{ name: "x", arguments: {} }]);
    registerToolFormat(before);
    expect(getToolFormat("deepseek_v31")).toEqual({ ...before });
  });

  it("is refused where a part is missing or wrong", () => {
    for (const [parts, subject] of [
      [{ parse }, "name"],
      [{ name: "a" }, "parse"],
      [{ name: "a", parse, aliases: "b" }, "aliases"],
      [{ name: "a", parse, callStart: { look: () => 1 } }, "callStart"],
      [{ name: "a", parse, grammar: "root" }, "grammar"],
      [{ name: "a", parse, withoutCalls: { parse } }, "withoutCalls"],
    ] as const)
      expect(() => defineToolFormat(parts as never)).toThrow(
        expect.objectContaining({ code: "config/bad-value", subject: `defineToolFormat: ${subject}` }),
      );
    expect(() => defineToolFormat({ name: "a", parse, parser: parse } as never)).toThrow(
      expect.objectContaining({ code: "config/unknown-key" }),
    );
  });
});
