import type { ToolSchema } from "@cria/core";
import { literal } from "../grammar/grammar-writer.js";
import { type ParameterForm, parametersGrammar } from "../grammar/parameters-grammar.js";
import { bareName, inRow, NEWLINE, type TurnGrammar, writeCalls } from "../grammar/turn-grammar.js";
import { skipSpace } from "../parsers/json-span.js";
import { makeMalformedCall } from "../parsers/make-call.js";
import { type CallBlock, findNextMark } from "../parsers/marked-calls.js";
import { typeArguments } from "../parsers/type-by-schema.js";

/** Tags of a call: `open name nameEnd key ... keyEnd value ... valueEnd close`. */
export interface GlmTags {
  open: string;
  /** Behind the name; "" if nothing stands there. */
  nameEnd: string;
  key: string;
  keyEnd: string;
  value: string;
  valueEnd: string;
  close: string;
}

/** Longest name, of a tool or a parameter, in characters: a longer one is not searched further. */
const LONGEST_NAME = 200;

/**
 * GLM's notation of calls: a name, then pairs of a key and a value. A value is everything up to its closing tag, and gets the type that the
 * tool's schema asks for.
 */
export class GlmNotation {
  constructor(private readonly tags: GlmTags) {}

  /** Reads a call; `start` is the index behind its opening tag. */
  read(text: string, start: number, tools: readonly ToolSchema[]): CallBlock {
    const { nameEnd, key: keyTag, keyEnd, value: valueTag, valueEnd, close } = this.tags;
    const head = /^\s{0,20}([^<>{}\s]{1,200})\s{0,20}(?=<)/.exec(text.slice(start, start + LONGEST_NAME + 50));
    if (head === null) return this.endBroken(text, start, "no name");
    const name = head[1]!;
    const behind = start + head[0].length;
    if (!text.startsWith(nameEnd, behind)) return this.endBroken(text, behind, `${nameEnd} is missing`, name);
    const values: [key: string, text: string][] = [];
    for (let at = skipSpace(text, behind + nameEnd.length); ; ) {
      if (text.startsWith(close, at))
        return { calls: [{ name, arguments: typeArguments(name, values, tools) }], end: at + close.length };
      if (!text.startsWith(keyTag, at)) return this.endBroken(text, at, `${close} is missing`, name);
      const from = at + keyTag.length;
      const length = text.slice(from, from + LONGEST_NAME + keyEnd.length).indexOf(keyEnd);
      if (length < 0) return this.endBroken(text, at, `${keyEnd} is missing`, name);
      const value = skipSpace(text, from + length + keyEnd.length);
      const key = text.slice(from, from + length).trim();
      if (!text.startsWith(valueTag, value)) return this.endBroken(text, value, `no ${valueTag} for "${key}"`, name);
      const end = text.indexOf(valueEnd, value);
      if (end < 0)
        return this.endBroken(text, text.length, `the value of "${key}" is not closed: ${valueEnd} is missing`, name);
      values.push([key, text.slice(value + valueTag.length, end)]);
      at = skipSpace(text, end + valueEnd.length);
    }
  }

  /** One call, or several. */
  readonly grammar: TurnGrammar = (turn) => {
    const { open, nameEnd, key, keyEnd, value, valueEnd, close } = this.tags;
    const parameter: ParameterForm = {
      open: (name) => `${literal(key + name + keyEnd)} ${NEWLINE}? ${literal(value)}`,
      close: () => `${literal(valueEnd)} ${NEWLINE}?`,
      closeTag: valueEnd,
      keys: /^[^<>\n]{1,200}$/,
    };
    const call = writeCalls(turn, (tool) => {
      const name = literal(open + bareName(tool, /^[^<>{}\s]+$/) + nameEnd);
      return `${name} ${NEWLINE}? ${parametersGrammar(turn.writer, tool, parameter)} ${literal(close)}`;
    });
    return inRow(call, `${NEWLINE}?`, turn);
  };

  /** A broken call ends at the next tag that ends or begins one: a later call may be right. */
  private endBroken(text: string, from: number, reason: string, name = ""): CallBlock {
    const { open, nameEnd, key, keyEnd, value, valueEnd, close } = this.tags;
    const { mark, at } = findNextMark(text, [open, close], from);
    const shape = `${open}name${nameEnd}${key}key${keyEnd}${value}value${valueEnd}${close}`;
    return {
      calls: [makeMalformedCall(`${reason}; expected ${shape}`, name)],
      end: at + (mark === close ? mark.length : 0),
    };
  }
}
