import type { ToolSchema } from "@cria/core";
import { beginsAtEnd, type CallStart } from "./call-start.js";
import { escapePattern } from "./escape-pattern.js";
import { keepText, makeCall, makeMalformedCall } from "./make-call.js";
import { skipThinking, thinkingPattern } from "./thinking.js";
import type { ParsedToolCall, ParsedTurn } from "./tool-parser.js";
import { typeArguments } from "./type-by-schema.js";

/** A tag with a name in it, as `<function=name>`. */
export interface NamedTag {
  before: string;
  /** Any of these stands behind the name. */
  after: readonly string[];
  /** A text behind which the tag is another format's. */
  notBehind?: string;
  /** The source of a pattern of what stands behind the name, where that is more than `after` lists. */
  pattern?: string;
}

/** The tags of calls whose parameters are elements with plain text in them. */
export interface CallTags {
  /** Pairs of tags around one call, or several. A call may lack them. */
  outer: readonly (readonly [open: string, close: string])[];
  function: NamedTag;
  functionEnd: string;
  parameter: NamedTag;
  parameterEnd: string;
  /** True if a value stands on lines of its own: one line break on either side is then not part of it. */
  hasOwnLines: boolean;
  /** Tags around JSON that may stand in place of all parameters. */
  json?: readonly [open: string, close: string];
  /** Reads a name as the tags write it. Default: unchanged. */
  readName?: (written: string) => string;
  /** The type that a parameter's tag states. Without this function the tool's schema decides. */
  readType?: (after: string) => "text" | "json";
  /** The expected form, for error texts. */
  shape: string;
}

/** A call being read. */
interface OpenCall {
  /** Index at which the call's text begins. */
  from: number;
  /** True if an outer tag stands before the call; its closing tag also ends the call. */
  hasOuter: boolean;
  name: string | null;
  values: Map<string, { text: string; after: string }>;
  /** The parameter whose value is being read, and where the value starts. */
  parameter: OpenParameter | null;
  /** The JSON in place of all parameters. */
  json: string | null;
  closed: boolean;
  error: string | null;
}

interface OpenParameter {
  /** Null for the JSON in place of all parameters. */
  key: string | null;
  after: string;
  start: number;
  /** The tag that closes it. */
  end: string;
}

/** Longest name in a tag, in characters. */
const LONGEST_NAME = 200;

/** Reads calls whose parameters are elements. A value is everything up to its closing tag. */
export class TaggedCalls {
  /**
   * Matches any tag. Groups: the function's name and the text behind it, the parameter's name and the text behind
   * it.
   */
  private readonly tag: RegExp;
  /** Matches a tag with a name, or the beginning of one at the end of a text. */
  private readonly namedTag: RegExp;
  private readonly namedBeginning: RegExp;
  /** Length of the longest tag with a name, in characters. */
  private readonly window: number;

  constructor(private readonly tags: CallTags) {
    const named = [tags.function, tags.parameter];
    const [called, parameter] = named.map(
      ({ before, after, notBehind, pattern = after.map(escapePattern).join("|") }) =>
        `${notBehind === undefined ? "" : `(?<!${escapePattern(notBehind)})`}${escapePattern(before)}([^${forbidden(after)}]{0,${LONGEST_NAME}})(${pattern})`,
    );
    const plain = [...tags.outer.flat(), ...(tags.json ?? []), tags.functionEnd, tags.parameterEnd].map(escapePattern);
    this.tag = new RegExp([thinkingPattern.source, ...plain, called, parameter].join("|"), "g");
    this.namedTag = new RegExp(`${called}|${parameter}`, "y");
    this.namedBeginning = new RegExp(
      `^(?:${named.map(({ before }) => escapePattern(before)).join("|")})[^<>\\n]*(?:<[^<>\\n]*)?$`,
    );
    this.window = Math.max(
      ...named.map(({ before, after }) => before.length + LONGEST_NAME + Math.max(...after.map((one) => one.length))),
    );
  }

  /** Judges whether a call begins at an index of a growing text. */
  look(text: string, at: number): CallStart {
    const opens = this.tags.outer.map(([open]) => open);
    if (opens.some((open) => text.startsWith(open, at))) return "call";
    this.namedTag.lastIndex = at;
    const tag = this.namedTag.exec(text);
    // A stray parameter is text, whatever its name looks like.
    if (tag) return tag[1] === undefined ? tag[0].length : "call";
    const marks = [...opens, this.tags.function.before, this.tags.parameter.before];
    const isBeginning =
      marks.some((mark) => beginsAtEnd(mark, text, at)) ||
      (text.length - at < this.window && this.namedBeginning.test(text.slice(at)));
    return isBeginning ? "wait" : 1;
  }

  parse(text: string, tools: readonly ToolSchema[]): ParsedTurn {
    const { outer, functionEnd, parameterEnd, parameter, json, readName = (written) => written } = this.tags;
    const calls: ParsedToolCall[] = [];
    const content: string[] = [];
    let copied = 0;
    let open: OpenCall | null = null;
    /** The tag that ends the outer one which was opened last. */
    let outerEnd: string | null = null;
    const begin = (from: number, hasOuter: boolean): OpenCall => {
      content.push(text.slice(copied, from));
      const nothing = { name: null, parameter: null, json: null, error: null };
      return { from, hasOuter, ...nothing, values: new Map(), closed: false };
    };
    const finish = (call: OpenCall, end: number) => {
      calls.push(...keepText([this.makeCall(call, tools)], text.slice(call.from, end)));
      copied = end;
      open = null;
    };
    let thoughtUntil = 0;
    for (const tag of text.matchAll(this.tag)) {
      const [written, called, , key, after] = tag;
      const end = tag.index + written.length;
      // Inside a value only its own closing tag counts: code may well contain the others.
      if (tag.index < thoughtUntil || (open?.parameter && written !== open.parameter.end)) continue;
      const opened = outer.find(([mark]) => mark === written);
      if (called !== undefined) {
        if (open && open.name !== null) finish(open, tag.index);
        open ??= begin(tag.index, false);
        open.name = readName(called.trim());
      } else if (opened) {
        if (open) finish(open, tag.index);
        open = begin(tag.index, true);
        outerEnd = opened[1];
      } else if (outer.some(([, close]) => close === written)) {
        if (open) finish(open, end);
        outerEnd = null;
      } else if (!open) {
        // Any other stray tag is content.
        if (thinkingPattern.test(written)) thoughtUntil = skipThinking(text, tag.index);
      } else if (key !== undefined) {
        open.parameter = { key: readName(key.trim()), after: after!, start: end, end: parameterEnd };
      } else if (written === json?.[0]) {
        open.parameter = { key: null, after: "", start: end, end: json[1] };
      } else if (written === parameterEnd || written === json?.[1]) {
        if (!open.parameter) open.error ??= `${written} without ${parameter.before}...${parameter.after[0]}`;
        else if (open.parameter.key === null) open.json = text.slice(open.parameter.start, tag.index);
        else open.values.set(open.parameter.key, this.readValue(text, open.parameter, tag.index));
        open.parameter = null;
      } else if (written === functionEnd) {
        open.closed = true;
        // Without an outer tag of its own, the function's closing tag ends the call. An outer closing tag that follows
        // ends the calls before, too.
        if (!open.hasOuter) finish(open, skipTag(text, end, outerEnd));
      }
    }
    if (open) finish(open, text.length);
    content.push(text.slice(copied));
    return { content: content.join(""), calls };
  }

  private readValue(text: string, { after, start }: OpenParameter, end: number) {
    const value = text.slice(start, end);
    return { text: this.tags.hasOwnLines ? value.replace(/^\r?\n/, "").replace(/\r?\n$/, "") : value, after };
  }

  private makeCall(call: OpenCall, tools: readonly ToolSchema[]): ParsedToolCall {
    const { function: called, functionEnd, readType, shape } = this.tags;
    const { name } = call;
    if (!name) return makeMalformedCall(`no ${called.before}name${called.after[0]}; expected ${shape}`);
    if (call.parameter) {
      const what = call.parameter.key === null ? "the JSON" : `parameter "${call.parameter.key}"`;
      return makeMalformedCall(`${what} is not closed: ${call.parameter.end} is missing`, name);
    }
    if (call.error) return makeMalformedCall(call.error, name);
    if (!call.closed) return makeMalformedCall(`unterminated tool call: ${functionEnd} is missing`, name);
    if (call.json !== null) return makeCall({ name, arguments: call.json }, shape);
    if (!readType) {
      const texts = Array.from(call.values, ([key, { text }]) => [key, text] as const);
      return { name, arguments: typeArguments(name, texts, tools) };
    }
    const values = Array.from(call.values, ([key, { text, after }]) => {
      return [key, readType(after) === "text" ? text : readJson(text)] as const;
    });
    return { name, arguments: Object.fromEntries(values) };
  }
}

/** Characters, as part of a class, that a name before these texts may not have. */
function forbidden(after: readonly string[]): string {
  return after.some((text) => text.startsWith('"')) ? '<>"\\n' : "<>\\n";
}

/** Index behind white space and a tag, or `at` where the tag does not follow. */
function skipTag(text: string, at: number, tag: string | null): number {
  if (tag === null) return at;
  const space = /\s{0,20}/y;
  space.lastIndex = at;
  space.exec(text);
  return text.startsWith(tag, space.lastIndex) ? space.lastIndex + tag.length : at;
}

/** Text that is no JSON stays text; validation reports it to the model. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
