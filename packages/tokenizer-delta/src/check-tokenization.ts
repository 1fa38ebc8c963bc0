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

/** Compares concatenated ids with the tokenization of the whole rendered conversation. Never throws. */
export function checkTokenization(
  tokenIds: ArrayLike<number>,
  wholeText: string,
  tokenizer: TextTokenizer,
  mode: SanityCheckMode = "strict",
): TokenizationCheck {
  if (mode === "disable") return { kind: "equal" };
  const received = tokenizer.detokenize(tokenIds);
  if (normalize(received, mode) !== normalize(wholeText, mode)) {
    const at = findDifference(wholeText, received);
    return { kind: "mismatch", expected: excerpt(wholeText, at), received: excerpt(received, at) };
  }
  if (mode === "ignore_strippable") return { kind: "equal" };
  const whole = tokenizer.tokenize(wholeText);
  const at = findDifference(whole, tokenIds);
  if (at < 0) return { kind: "equal" };
  const around = (ids: ArrayLike<number>) => tokenizer.detokenize(Array.from(ids).slice(Math.max(0, at - 3), at + 4));
  return { kind: "drift", expected: around(whole), received: around(tokenIds) };
}

function normalize(text: string, mode: SanityCheckMode): string {
  return mode === "ignore_strippable" ? text.replace(/\s+/g, "") : text;
}

/** Index of the first difference, -1 when equal. */
function findDifference(a: ArrayLike<unknown>, b: ArrayLike<unknown>): number {
  const n = Math.max(a.length, b.length);
  for (let i = 0; i < n; i++) if (a[i] !== b[i]) return i;
  return -1;
}

function excerpt(text: string, at: number): string {
  return text.slice(Math.max(0, at - 20), at + 40);
}
