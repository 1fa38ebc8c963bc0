import type { TextTokenizer } from "./delta-tokenizer.js";

/** strict compares texts exactly; ignore_strippable leaves out whitespace; disable compares nothing. */
export type SanityCheckMode = "strict" | "ignore_strippable" | "disable";

export interface TokenizationCheck {
  /** "drift": the same text in other tokens (sampling need not follow the tokenizer's merges). "mismatch": other text. */
  kind: "equal" | "drift" | "mismatch";
  /** Around the first difference, for a reader. */
  expected?: string;
  received?: string;
}

/** Characters of context before and after the first difference. */
const BEFORE = 20;
const AFTER = 40;

/** Compares concatenated ids with the tokenization of the whole rendered conversation. Never throws. */
export function checkTokenization(
  tokenIds: ArrayLike<number>,
  wholeText: string,
  tokenizer: TextTokenizer,
  mode: SanityCheckMode = "strict",
): TokenizationCheck {
  if (mode === "disable") return { kind: "equal" };
  const received = tokenizer.detokenize(tokenIds);
  const place = findTextDifference(wholeText, received, mode === "ignore_strippable");
  if (place) {
    const excerpt = (text: string, at: number) => text.slice(Math.max(0, at - BEFORE), at + AFTER);
    return { kind: "mismatch", expected: excerpt(wholeText, place.a), received: excerpt(received, place.b) };
  }
  if (mode === "ignore_strippable") return { kind: "equal" };
  const whole = tokenizer.tokenize(wholeText);
  const at = findTokenDifference(whole, tokenIds);
  if (at < 0) return { kind: "equal" };
  const around = (ids: ArrayLike<number>) => tokenizer.detokenize(Array.from(ids).slice(Math.max(0, at - 3), at + 4));
  return { kind: "drift", expected: around(whole), received: around(tokenIds) };
}

/** Where two texts first differ, in each of them; null when they do not. */
function findTextDifference(a: string, b: string, skipSpace: boolean): { a: number; b: number } | null {
  if (a === b) return null;
  let i = 0;
  let j = 0;
  for (;;) {
    if (skipSpace) {
      while (i < a.length && a[i]!.trim() === "") i++;
      while (j < b.length && b[j]!.trim() === "") j++;
    }
    if (i >= a.length && j >= b.length) return null;
    if (a[i] !== b[j]) return { a: i, b: j };
    i++;
    j++;
  }
}

/** Index of the first difference, -1 when equal. */
function findTokenDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const n = Math.max(a.length, b.length);
  for (let i = 0; i < n; i++) if (a[i] !== b[i]) return i;
  return -1;
}
