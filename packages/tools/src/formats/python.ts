import type { JsonSchema, ToolSchema } from "@cria/core";
import { restricts } from "../grammar/json-schema-grammar.js";
import { readCount } from "../grammar/string-grammar.js";
import type { TurnGrammar } from "../grammar/turn-grammar.js";
import type { CallStartFinder } from "../parsers/call-start.js";
import { isRecord, keepText, makeMalformedCall } from "../parsers/make-call.js";
import { skipThinking } from "../parsers/thinking.js";
import type { ParsedToolCall, ToolParser } from "../parsers/tool-parser.js";
import { defineToolFormat } from "./tool-format.js";

/** Characters of a line that are read. */
const LINE_WINDOW = 100;

const parse: ToolParser = (text, tools = []) => {
  const name = findCodeTool(tools)?.function.name ?? "code_interpreter";
  const calls: ParsedToolCall[] = [];
  const content: string[] = [];
  let code: string[] | null = null;
  let start = 0;
  /** Index at which the open fence begins. */
  let opened = 0;
  let thoughtUntil = 0;
  for (const line of text.split("\n")) {
    const at = start;
    start += line.length + 1;
    if (code === null) {
      thoughtUntil = Math.max(thoughtUntil, findThoughtEnd(text, at, at + line.length, thoughtUntil));
      if (at < thoughtUntil) content.push(line);
      else if (opensFence(line)) {
        code = [];
        opened = at;
      } else content.push(line);
    } else if (/^\s{0,3}```\s*$/.test(line.slice(0, 100))) {
      calls.push({ name, arguments: { code: code.join("\n") } });
      code = null;
    } else {
      code.push(line);
    }
  }
  if (code !== null) {
    const call = makeMalformedCall("the code fence is not closed: ``` is missing", name);
    calls.push(...keepText([call], text.slice(opened)));
  }
  return { content: content.join("\n"), calls };
};

function opensFence(line: string): boolean {
  return /^\s{0,3}```(?:python|py|python3)\s*$/i.test(line.slice(0, LINE_WINDOW));
}

const callStart: CallStartFinder = {
  candidate: /\n/,
  look: (text, at, isFirst) => {
    if (!isFirst && text[at] !== "\n") return 1;
    const start = text[at] === "\n" ? at + 1 : at;
    const end = text.indexOf("\n", start);
    const line = text.slice(start, end < 0 ? text.length : end);
    if (end >= 0 || line.length >= LINE_WINDOW) return opensFence(line) ? "call" : 1;
    return /^\s{0,3}(?:`{0,2}|```[a-z0-9]{0,7}\s*)$/i.test(line) ? "wait" : 1;
  },
};

/** The end of the last thinking that opens on the line `[from, to)`, outside of earlier thinking; 0 when none opens. */
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

/** The tool that takes a fence's code. */
function findCodeTool(tools: readonly ToolSchema[]): ToolSchema | undefined {
  return tools.find(({ function: { parameters } }) => {
    const properties = isRecord(parameters.properties) ? parameters.properties : {};
    return isRecord(properties.code) && (properties.code.type ?? "string") === "string";
  });
}

/** True if the schema allows any code, and code alone. */
function takesAnyCode(parameters: JsonSchema, code: JsonSchema): boolean {
  const hasOnly = (schema: JsonSchema, known: readonly string[]) =>
    Object.keys(schema).every((key) => known.includes(key) || !restricts(schema, key));
  const required: unknown[] = Array.isArray(parameters.required) ? parameters.required : [];
  return (
    hasOnly(code, ["type", "format", "nullable"]) &&
    hasOnly(parameters, ["type", "properties", "required", "additionalProperties", "minProperties", "maxProperties"]) &&
    (parameters.type ?? "object") === "object" &&
    required.every((name) => name === "code") &&
    readCount(parameters.minProperties, 0) <= 1 &&
    readCount(parameters.maxProperties, 1) >= 1
  );
}

/** A fence, if the tool that its parser calls takes any code. No line of the code begins with a backtick. */
const grammar: TurnGrammar = ({ writer, tools, called }) => {
  const codeTool = findCodeTool(tools);
  if (!codeTool || !called.includes(codeTool)) return null;
  const { code } = codeTool.function.parameters.properties as Record<string, JsonSchema>;
  if (!takesAnyCode(codeTool.function.parameters, code!)) return null;
  const line = writer.rule("line", "[ \\t]* ([!-_a-~] [^\\n\\r\\x00]*)?");
  return `"\`\`\`python\\n" (${line} "\\n")+ "\`\`\`"`;
};

/**
 * Code in a Python fence is a call of the code tool, with the code as its argument. The tool is the first of those
 * given that takes a string `code`; without schemas it is called `code_interpreter`. A fence opens and closes at the
 * start of a line, so backticks inside the code do no harm.
 */
export const python = defineToolFormat({ name: "python", parse, callStart, grammar, detectionRank: 3 });
