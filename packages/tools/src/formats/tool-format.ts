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

/** How a model writes tool calls: all that Cria knows of it. */
export interface ToolFormat extends TurnReader {
  /** What `multi_turn.format` calls it. */
  readonly name: string;
  /** What other frameworks call it. */
  readonly aliases: readonly string[];
  /** Where the first call of a turn may begin; null where `split` finds that by itself. */
  readonly callStart: CallStartFinder | null;
  /** Writes turns of calls as a grammar; null where no grammar can say them, and `tool_choice` cannot be enforced. */
  readonly grammar: TurnGrammar | null;
  /** How turns are read when there are no tools: nothing is a call, and thoughts are thoughts all the same. */
  readonly withoutCalls: TurnReader;
  /**
   * Which formats are tried first on the call that a chat template prints: lower ones, and equal ones by name. 0 is for formats with
   * marks of their own; those that read bare JSON and fences would read some of the others too, and come later.
   */
  readonly detectionRank: number;
}

/** What must be said of a format. The rest fits turns of text with calls in it that may begin anywhere. */
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
  callStart: [(value) => value === null || isCallStart(value), "{ candidate, look }, or null"],
  split: [isFunction, "a function that makes a splitter of turns"],
  grammar: [(value) => value === null || isFunction(value), "a function that writes a grammar, or null"],
  withoutCalls: [isReader, "{ parse, split }"],
  detectionRank: optionChecks.number,
};

/** A whole format. Without `callStart` and `split` any text after the first thoughts may be a call. @throws ConfigError */
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
    callStart: parts.callStart ?? (parts.split ? null : anyTextStart),
    split: parts.split ?? ((onSpoken) => new TagSplitter(start, onSpoken)),
    grammar: parts.grammar ?? null,
    withoutCalls: parts.withoutCalls ?? noCalls,
    detectionRank: parts.detectionRank ?? 0,
  };
}

/** The format that a user's parser reads. The parser does not see the thinking that a turn begins with. */
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
