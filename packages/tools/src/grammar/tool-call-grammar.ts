import { DataError, type ToolSchema } from "@cria/core";
import { findToolFormat } from "../formats/registry.js";
import type { ToolFormat } from "../formats/tool-format.js";
import { GrammarWriter } from "./grammar-writer.js";

export interface ToolCallGrammarOptions {
  /** The tool to call; default: any of them. */
  name?: string;
  /** Allow several calls in a row, where the format can write them. Default false: exactly one. */
  parallel?: boolean;
}

/**
 * A grammar (GBNF) of a turn that is exactly one call of one of the tools (`parallel`: one or more), written as the
 * format's parser reads it, for `tool_choice` "required" or a named function. Arguments satisfy the tool's schema as
 * `jsonSchemaToGrammar` writes them. Null where the format has no grammar (users' parsers, unknown names), and for
 * `python` with tools whose schema says more than that they take code.
 * @throws DataError for an unknown tool, or for a schema or name that the format cannot write.
 */
export function toolCallGrammar(
  format: string | ToolFormat,
  tools: readonly ToolSchema[],
  options: ToolCallGrammarOptions = {},
): string | null {
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
  const { grammar } = (typeof format === "string" ? findToolFormat(format) : format) ?? { grammar: null };
  const writer = new GrammarWriter();
  const turn = grammar?.({ writer, called, tools, isParallel: options.parallel ?? false }) ?? null;
  return turn === null ? null : writer.write(turn);
}
