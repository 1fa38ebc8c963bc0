import type { ToolSchema } from "@cria/core";
import { isRecord, makeMalformedCall } from "./make-call.js";
import { skipThinking } from "./thinking.js";
import type { ParsedToolCall, ToolParser } from "./tool-parser.js";

/**
 * Code in a Python fence is a call of the code tool, with the code as its argument. The tool is the first of those given
 * that takes a string `code`; without schemas it is called `code_interpreter`. A fence opens and closes at the start of
 * a line, so backticks inside the code do no harm.
 */
export const parsePythonFence: ToolParser = (text, tools = []) => {
  const name = findCodeTool(tools)?.function.name ?? "code_interpreter";
  const calls: ParsedToolCall[] = [];
  const content: string[] = [];
  let code: string[] | null = null;
  let start = 0;
  let thoughtUntil = 0;
  for (const line of text.split("\n")) {
    const at = start;
    start += line.length + 1;
    if (code === null) {
      thoughtUntil = Math.max(thoughtUntil, findThoughtEnd(text, at, at + line.length, thoughtUntil));
      if (at < thoughtUntil) content.push(line);
      else if (/^\s{0,3}```(?:python|py|python3)\s*$/i.test(line.slice(0, 100))) code = [];
      else content.push(line);
    } else if (/^\s{0,3}```\s*$/.test(line.slice(0, 100))) {
      calls.push({ name, arguments: { code: code.join("\n") } });
      code = null;
    } else {
      code.push(line);
    }
  }
  if (code !== null) calls.push(makeMalformedCall("the code fence is not closed: ``` is missing", name));
  return { content: content.join("\n"), calls };
};

/** Where the last thinking that opens on the line `[from, to)`, outside of earlier thinking, ends; 0 when none opens. */
function findThoughtEnd(text: string, from: number, to: number, thoughtUntil: number): number {
  let end = 0;
  for (let at = Math.max(from, thoughtUntil); at < to; at++) {
    if (text[at] !== "<" && text[at] !== "[") continue;
    const next = skipThinking(text, at);
    if (next > at) {
      end = next;
      at = next - 1;
    }
  }
  return end;
}

/** The tool that takes the code of a fence. */
export function findCodeTool(tools: readonly ToolSchema[]): ToolSchema | undefined {
  return tools.find(({ function: { parameters } }) => {
    const properties = isRecord(parameters.properties) ? parameters.properties : {};
    return isRecord(properties.code) && (properties.code.type ?? "string") === "string";
  });
}
