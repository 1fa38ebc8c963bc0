import type { SpecialToken } from "@cria/core";
import { findFirst, type RenderedText } from "./rendered-text.js";
import { countBytes } from "./special-tokens.js";

/** A part of a text: a special token with the whitespace that it removes, or text between special tokens. */
export interface Cut {
  from: number;
  to: number;
  token: SpecialToken | null;
}

export interface Cuts {
  /** They cover the whole text, in order. */
  cuts: Cut[];
  /**
   * False when two tokens of the same length overlap: llama.cpp's order among those is undefined, so its cuts may be
   * different.
   */
  certain: boolean;
}

/**
 * Cuts a text at its special tokens exactly as llama.cpp does (tokenizer_st_partition): token by token, the longest
 * first, each from left to right in the remaining text. llama.cpp walks a list of all parts again for each match, so
 * its time grows with the square of their number; here it is linear.
 * @param spelled the special tokens that occur in the text, the longest (in bytes) first.
 */
export function cutAtSpecialTokens(
  { text, plainAt }: Omit<RenderedText, "images">,
  spelled: readonly SpecialToken[],
): Cuts {
  const found: (Cut & { token: SpecialToken })[] = [];
  let certain = true;
  /** For each character, 1 + the index in `found` of its cut; 0: remaining text. */
  const owners = new Int32Array(text.length);
  for (const token of spelled) {
    const { length } = token.text;
    let at = text.indexOf(token.text);
    while (at >= 0) {
      const owner = findOwner(owners, at, at + length);
      if (owner) {
        const cut = found[owner - 1]!;
        if (cut.token !== token && countBytes(cut.token) === countBytes(token)) certain = false;
        at = text.indexOf(token.text, cut.to);
      } else if (token.control && isPlain(plainAt, at, length)) {
        at = text.indexOf(token.text, at + 1);
      } else {
        let from = at;
        let to = at + length;
        while (token.stripLeft && from > 0 && !owners[from - 1] && isSpace(text.charCodeAt(from - 1))) from--;
        while (token.stripRight && to < text.length && !owners[to] && isSpace(text.charCodeAt(to))) to++;
        found.push({ from, to, token });
        owners.fill(found.length, from, to);
        at = text.indexOf(token.text, to);
      }
    }
  }
  return { cuts: fillGaps(found, text.length), certain };
}

/** The first owner of a character in [from, to); 0 when all of it is remaining text. */
function findOwner(owners: Int32Array, from: number, to: number): number {
  for (let i = from; i < to; i++) if (owners[i]) return owners[i]!;
  return 0;
}

/** True if a control token's text at this place comes from users or tools. */
function isPlain(plainAt: readonly number[], at: number, length: number): boolean {
  const first = plainAt[findFirst(plainAt, length === 1 ? at : at + 1)];
  return first !== undefined && first < at + length;
}

/** C's isspace, as in llama.cpp. */
function isSpace(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13);
}

function fillGaps(found: readonly Cut[], length: number): Cut[] {
  const cuts: Cut[] = [];
  let at = 0;
  for (const cut of [...found].sort((a, b) => a.from - b.from)) {
    if (cut.from > at) cuts.push({ from: at, to: cut.from, token: null });
    cuts.push(cut);
    at = cut.to;
  }
  if (at < length) cuts.push({ from: at, to: length, token: null });
  return cuts;
}
