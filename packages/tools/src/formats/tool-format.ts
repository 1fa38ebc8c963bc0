import {
  type ChecksOf,
  checkOptions,
  isFunction,
  isObject,
  isText,
  optionChecks,
  refuseOption,
} from "@cria/core/internal";
import type { TurnGrammar } from "../grammar/turn-grammar.js";
import { anyTextStart, type CallStartFinder } from "../parsers/call-start.js";
import { findThinkingEnd } from "../parsers/thinking.js";
import type { ToolParser } from "../parsers/tool-parser.js";
import { TagSplitter } from "../splitters/tag-splitter.js";
import { noCalls, type TurnReader } from "../splitters/turn-reader.js";

/** A format of tool calls: everything that Cria knows of it. */
export interface ToolFormat extends TurnReader {
  /** Its value in `multi_turn.format`. */
  readonly name: string;
  /** Other frameworks' names for it. */
  readonly aliases: readonly string[];
  /**
   * Pattern of a call as instructions show it, for models whose chat template prints no calls, if another format's
   * calls begin the same way; null if no other format's calls do.
   */
  readonly example: RegExp | null;
  /** Finds the place where a turn's first call may begin; null where `split` finds it. */
  readonly callStart: CallStartFinder | null;
  /**
   * Writes turns of calls as a grammar; null where no grammar can express them, and `tool_choice` cannot be enforced.
   */
  readonly grammar: TurnGrammar | null;
  /** Reads turns when there are no tools: nothing is a call, but thoughts stay thoughts. */
  readonly withoutCalls: TurnReader;
  /**
   * Order in which formats are tried on a call that a chat template prints: lower ranks first, equal ranks by name.
   * Formats with distinctive marks have 0; formats that read bare JSON or fences would also read some of the others,
   * and come later.
   */
  readonly detectionRank: number;
}

/** The required parts of a format. The defaults fit turns of text with calls that may begin anywhere. */
export type ToolFormatParts = Pick<ToolFormat, "name" | "parse"> & Partial<ToolFormat>;

const isReader = (value: unknown) => {
  const { parse, split } = isObject(value) ? (value as Partial<TurnReader>) : {};
  return isFunction(parse) && isFunction(split);
};

const isCallStart = (value: unknown) => {
  const { candidate, look } = isObject(value) ? (value as Partial<CallStartFinder>) : {};
  return candidate instanceof RegExp && isFunction(look);
};

const partChecks: ChecksOf<ToolFormat> = {
  name: optionChecks.text,
  aliases: [(names) => Array.isArray(names) && names.every(isText), "a list of names"],
  parse: [isFunction, "a function (text, tools) => ({ content, calls })"],
  example: [(value) => value === null || value instanceof RegExp, "a pattern, or null"],
  callStart: [(value) => value === null || isCallStart(value), "{ candidate, look }, or null"],
  split: [isFunction, "a function that makes a splitter of turns"],
  grammar: [(value) => value === null || isFunction(value), "a function that writes a grammar, or null"],
  withoutCalls: [isReader, "{ parse, split }"],
  detectionRank: optionChecks.number,
};

/**
 * A whole format. Without `callStart` and `split` any text after the first thoughts may be a call.
 * @throws ConfigError
 */
export function defineToolFormat(parts: ToolFormatParts): ToolFormat {
  checkOptions("defineToolFormat", parts, partChecks);
  for (const key of ["name", "parse"] as const)
    if (parts[key] === undefined)
      throw refuseOption(`defineToolFormat: ${key}`, "is missing", partChecks[key][1], undefined);
  const start = parts.callStart ?? anyTextStart;
  return {
    name: parts.name,
    aliases: parts.aliases ?? [],
    parse: parts.parse,
    example: parts.example ?? null,
    callStart: parts.callStart ?? (parts.split ? null : anyTextStart),
    split: parts.split ?? ((onSpoken) => new TagSplitter(start, onSpoken)),
    grammar: parts.grammar ?? null,
    withoutCalls: parts.withoutCalls ?? noCalls,
    detectionRank: parts.detectionRank ?? 0,
  };
}

/** The format that a user's parser reads. The parser does not see the thinking at the beginning of a turn. */
export function formatOfParser(name: string, parse: ToolParser): ToolFormat {
  return defineToolFormat({
    name,
    parse: (text, tools) => {
      const end = findThinkingEnd(text);
      if (end === 0) return parse(text, tools);
      const { content, ...rest } = parse(text.slice(end), tools);
      return { ...rest, content: text.slice(0, end) + content };
    },
  });
}
