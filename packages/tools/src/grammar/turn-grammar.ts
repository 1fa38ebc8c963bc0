import { DataError, type ToolSchema } from "@cria/core";
import { anyOf, type GrammarWriter, literal } from "./grammar-writer.js";
import { SchemaGrammar } from "./json-schema-grammar.js";

/** The input of a turn's grammar. */
export interface GrammarTurn {
  writer: GrammarWriter;
  /** The tools that the turn may call, at least one. */
  called: readonly ToolSchema[];
  /** All tools that the model sees. */
  tools: readonly ToolSchema[];
  /** True if several calls may follow each other, in formats that allow it. */
  isParallel: boolean;
}

/**
 * Writes an expression for a turn that is exactly one call, or one and more; null where no grammar can express such
 * calls.
 * @throws DataError for a schema or name that the format cannot write.
 */
export type TurnGrammar = (turn: GrammarTurn) => string | null;

export const NEWLINE = '"\\n"';

/** A rule for one call of any of the tools. @param write writes a call of one of them. */
export function writeCalls({ writer, called }: GrammarTurn, write: (tool: ToolSchema) => string): string {
  return writer.rule("call", anyOf(called.map((tool) => writer.rule(`call-${tool.function.name}`, write(tool)))));
}

/** One call, or several with a separator between them. */
export function inRow(call: string, separator: string, { isParallel }: GrammarTurn): string {
  return isParallel ? `${call} (${separator} ${call})*` : call;
}

/**
 * An expression for arguments, in JSON, that satisfy the tool's schema.
 * @param escapesTags true if `<` in texts must be escaped.
 */
export function argumentsOf(writer: GrammarWriter, tool: ToolSchema, escapesTags = false): string {
  const { name, parameters } = tool.function;
  const schema = Object.keys(parameters).length === 0 ? { type: "object" } : { type: "object", ...parameters };
  return new SchemaGrammar(writer, schema, escapesTags).write(schema, `tool "${name}"`);
}

/** `{"name": ..., "arguments": {...}}`, with the format's key for arguments. */
export function jsonCall(writer: GrammarWriter, tool: ToolSchema, key = "arguments"): string {
  const space = '" "?';
  const name = `${literal('{"name":')} ${space} ${literal(`${JSON.stringify(tool.function.name)},`)}`;
  return `${name} ${space} ${literal(`"${key}":`)} ${space} ${argumentsOf(writer, tool)} "}"`;
}

/** A name that stands in the text without quotes. @throws DataError where it cannot. */
export function bareName(tool: ToolSchema, allowed: RegExp): string {
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
