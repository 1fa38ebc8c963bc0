import { DataError, type JsonSchema, type ToolSchema } from "@cria/core";
import { findCodeTool } from "../parsers/python-fence.js";
import { resolveFormat } from "../parsers/registry.js";
import { findArgumentError } from "../validate-arguments.js";
import { anyOf, GrammarWriter, literal } from "./grammar-writer.js";
import { SchemaGrammar } from "./json-schema-grammar.js";
import { parametersGrammar } from "./parameters-grammar.js";

export interface ToolCallGrammarOptions {
  /** The tool to call; default: any of them. */
  name?: string;
  /** Let several calls follow each other, where the format can write that. Default false: exactly one. */
  parallel?: boolean;
}

/** How a format writes calls, of tools that are given by their parts. */
interface CallFormat {
  /** One call. */
  call(writer: GrammarWriter, tool: ToolSchema): string;
  /** Of an expression for any one call: the turn. */
  turn?(call: string, isParallel: boolean): string;
}

const NEWLINE = '"\\n"';

function argumentsOf(writer: GrammarWriter, tool: ToolSchema, escapesTags = false): string {
  const { name, parameters } = tool.function;
  const schema = Object.keys(parameters).length === 0 ? { type: "object" } : { type: "object", ...parameters };
  return new SchemaGrammar(writer, schema, escapesTags).write(schema, `tool "${name}"`);
}

/** `{"name": ..., "arguments": {...}}`, with the key that the format has for arguments. */
function jsonCall(writer: GrammarWriter, tool: ToolSchema, key = "arguments"): string {
  const space = '" "?';
  const name = `${literal('{"name":')} ${space} ${literal(`${JSON.stringify(tool.function.name)},`)}`;
  return `${name} ${space} ${literal(`"${key}":`)} ${space} ${argumentsOf(writer, tool)} "}"`;
}

/** A name that stands in the text without quotes. */
function bareName(tool: ToolSchema, allowed: RegExp): string {
  const { name } = tool.function;
  if (!allowed.test(name) || name.length > 150) {
    throw new DataError("cannot be called in this format", {
      code: "data/unsupported-schema",
      subject: `tool "${name}"`,
      expected: `a name of at most 150 characters that matches ${allowed}`,
      received: name,
      remedy: "rename the tool",
    });
  }
  return name;
}

const formats: Record<string, CallFormat> = {
  hermes: {
    call: (writer, tool) => `"<tool_call>" ${NEWLINE}? ${jsonCall(writer, tool)} ${NEWLINE}? "</tool_call>"`,
    turn: (call, isParallel) => (isParallel ? `${call} (${NEWLINE} ${call})*` : call),
  },
  qwen3_coder: {
    call: (writer, tool) => {
      const name = bareName(tool, /^[^<>\s]+$/);
      const parameters = parametersGrammar(writer, tool);
      return `${literal(`<tool_call>\n<function=${name}>\n`)} ${parameters} ${literal("</function>\n</tool_call>")}`;
    },
    turn: (call, isParallel) => (isParallel ? `${call} (${NEWLINE} ${call})*` : call),
  },
  llama3_json: {
    call: (writer, tool) => jsonCall(writer, tool, "parameters"),
    turn: (call, isParallel) => (isParallel ? `${call} (";" " "? ${call})*` : call),
  },
  "chatml-json": {
    call: (writer, tool) => jsonCall(writer, tool),
    turn: (call, isParallel) => (isParallel ? `${call} | "[" ${call} ("," " "? ${call})* "]"` : call),
  },
  mistral: {
    // Two generations of the format: a list of calls behind one mark, or a mark for each. A model knows one of them.
    call: (writer, tool) => {
      const name = bareName(tool, /^[^[\]{}\s]+$/);
      return `${literal(`[TOOL_CALLS]${name}`)} "[ARGS]"? ${argumentsOf(writer, tool)}`;
    },
  },
  gpt_oss: {
    // The header begins where the generation prompt ends, and the token <|call|> ends the turn.
    call: (writer, tool) => {
      const name = bareName(tool, /^[^\s<]+$/);
      const header = `<|channel|>commentary to=functions.${name} <|constrain|>json<|message|>`;
      return `${literal(header)} ${argumentsOf(writer, tool, true)}`;
    },
  },
  deepseek_v3: {
    call: (writer, tool) => {
      const name = bareName(tool, /^[^\s<>｜]+$/);
      const args = argumentsOf(writer, tool);
      const plain = `${literal(`${name}<｜tool▁sep｜>`)} ${args}`;
      const fenced = `${literal(`function<｜tool▁sep｜>${name}\n\`\`\`json\n`)} ${args} ${literal("\n```")}`;
      return `"<｜tool▁call▁begin｜>" (${plain} | ${fenced}) "<｜tool▁call▁end｜>"`;
    },
    turn: (call, isParallel) =>
      `"<｜tool▁calls▁begin｜>" ${isParallel ? `${call} (${NEWLINE}? ${call})*` : call} "<｜tool▁calls▁end｜>"`,
  },
};

/**
 * A grammar (GBNF) of a turn that is exactly one call of one of the tools (`parallel`: one or more), written as the format's
 * parser reads it, with arguments that satisfy the tool's schema as `jsonSchemaToGrammar` writes them: for `tool_choice`
 * "required" or a named function. Null where the format cannot be said in a grammar: formats of users, and `python` for tools
 * that want more than code.
 * @throws DataError when there is no such tool, or for a schema or name that the format cannot write.
 */
export function toolCallGrammar(
  format: string,
  tools: readonly ToolSchema[],
  options: ToolCallGrammarOptions = {},
): string | null {
  const known = resolveFormat(format);
  const called = tools.filter((tool) => options.name === undefined || tool.function.name === options.name);
  if (called.length === 0) {
    throw new DataError("has no tool to call", {
      code: "data/unknown-tool",
      subject: "toolCallGrammar",
      expected:
        options.name === undefined
          ? "at least one tool"
          : `one of ${tools.map((tool) => tool.function.name).join(", ")}`,
      received: options.name ?? "none",
    });
  }
  if (known === "python") return pythonGrammar(tools, called);
  if (!Object.hasOwn(formats, known)) return null;
  const { call, turn = (one) => one } = formats[known]!;
  const writer = new GrammarWriter();
  const isParallel = options.parallel ?? false;
  const any = writer.rule(
    "call",
    anyOf(called.map((tool) => writer.rule(`call-${tool.function.name}`, call(writer, tool)))),
  );
  if (known === "mistral") return writer.write(mistralTurn(writer, called, any, isParallel));
  return writer.write(turn(any, isParallel));
}

function mistralTurn(writer: GrammarWriter, tools: readonly ToolSchema[], named: string, isParallel: boolean): string {
  const item = writer.rule("item", anyOf(tools.map((tool) => jsonCall(writer, tool))));
  const list = `"[TOOL_CALLS]" " "? "[" ${item} ${isParallel ? `("," " "? ${item})*` : ""} "]"`;
  return `${list} | ${named}${isParallel ? "+" : ""}`;
}

/** A fence, if the tool that its parser calls takes any code. No line of the code begins with a backtick. */
function pythonGrammar(tools: readonly ToolSchema[], called: readonly ToolSchema[]): string | null {
  const codeTool = findCodeTool(tools);
  if (!codeTool || !called.includes(codeTool)) return null;
  const { code } = codeTool.function.parameters.properties as Record<string, JsonSchema>;
  const isFree = !["enum", "const", "pattern", "minLength", "maxLength"].some((key) => key in code!);
  if (!isFree || findArgumentError(codeTool, { code: "x = 1" }) !== null) return null;
  const line = "[ \\t]* ([!-_a-~] [^\\n\\r\\x00]*)?";
  return `root ::= "\`\`\`python\\n" (line "\\n")+ "\`\`\`"\nline ::= ${line}\n`;
}
