import type { TextTokenizer } from "./text-tokenizer.js";

/** strict compares texts exactly; ignore_strippable ignores whitespace; disable compares nothing. */
export type SanityCheckMode = "strict" | "ignore_strippable" | "disable";

export interface TokenizationCheck {
  /**
   * "drift": the same text in other tokens where the policy sampled (sampling need not follow the tokenizer's merges).
   * "rewritten": in history the template changes the policy's text (adds an empty `<think>` block, drops reasoning),
   * and everything else is the same. "other_end": the same, because the policy ends its turns with another end-of-turn
   * token than the template prints.
   * "mismatch": other text, or other tokens where nothing was sampled. "unchecked": there is nothing to compare with.
   */
  kind: "equal" | "drift" | "rewritten" | "other_end" | "mismatch" | "unchecked";
  /** The text around the first difference, for a reader. */
  expected?: string;
  received?: string;
  /** The reason why it is unchecked. */
  reason?: string;
}

export type ComparedTokenizer = Pick<TextTokenizer, "tokenize" | "detokenize">;

/** Characters of context before and after the first difference. */
const BEFORE = 20;
const AFTER = 40;

/**
 * Compares concatenated ids with the tokenization of the whole rendered conversation. Never throws.
 * @param mask 1 for sampled tokens, as long as `tokenIds`; without it, every token may be sampled.
 */
export function checkTokenization(
  tokenIds: ArrayLike<number>,
  wholeText: string,
  tokenizer: ComparedTokenizer,
  mode: SanityCheckMode = "strict",
  mask?: ArrayLike<number>,
): TokenizationCheck {
  if (mode === "disable") return { kind: "equal" };
  try {
    return compare(tokenIds, wholeText, tokenizer, mode, mask);
  } catch (error) {
    return { kind: "unchecked", reason: (error as Error).message };
  }
}

function compare(
  tokenIds: ArrayLike<number>,
  wholeText: string,
  tokenizer: ComparedTokenizer,
  mode: SanityCheckMode,
  mask: ArrayLike<number> | undefined,
): TokenizationCheck {
  const whole = tokenizer.tokenize(wholeText);
  // Both go through the tokenizer: some vocabularies normalize text, or strip a leading space.
  const expected = tokenizer.detokenize(whole);
  const received = tokenizer.detokenize(tokenIds);
  const place = findTextDifference(expected, received, mode === "ignore_strippable");
  if (place) {
    const excerpt = (text: string, at: number) => text.slice(Math.max(0, at - BEFORE), at + AFTER);
    return { kind: "mismatch", expected: excerpt(expected, place.a), received: excerpt(received, place.b) };
  }
  if (expected !== received) return { kind: "equal" };
  const drifts = findDrifts(whole, tokenIds, tokenizer);
  const [first] = drifts;
  if (!first) return { kind: "equal" };
  const wasSampled = (span: Span) => !mask || someIn(mask, span.b, span.bEnd);
  const shown = drifts.find((span) => !wasSampled(span)) ?? first;
  const around = (ids: ArrayLike<number>, from: number, to: number) =>
    tokenizer.detokenize(Array.from(ids).slice(Math.max(0, from - 3), to + 3));
  return {
    kind: wasSampled(shown) ? "drift" : "mismatch",
    expected: around(whole, shown.a, shown.aEnd),
    received: around(tokenIds, shown.b, shown.bEnd),
  };
}

/** The index of the first difference in each of two texts; null when they are equal. */
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

/** A range of the same text in two spellings: tokens [a, aEnd) of one sequence, [b, bEnd) of the other. */
interface Span {
  a: number;
  aEnd: number;
  b: number;
  bEnd: number;
}

/** The ranges in which two token sequences of the same text differ. */
function findDrifts(a: ArrayLike<number>, b: ArrayLike<number>, tokenizer: ComparedTokenizer): Span[] {
  const spans: Span[] = [];
  const lengthsOf = (ids: ArrayLike<number>) => {
    const lengths = new Map<number, number>();
    return (i: number) => {
      const id = ids[i]!;
      let length = lengths.get(id);
      if (length === undefined) {
        length = tokenizer.detokenize([id]).length;
        lengths.set(id, length);
      }
      return length;
    };
  };
  const lengthA = lengthsOf(a);
  const lengthB = lengthsOf(b);
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      i++;
      j++;
      continue;
    }
    const span: Span = { a: i, aEnd: i, b: j, bEnd: j };
    // Extends the shorter side until both spell the same text; lengths only decide which side to extend.
    let textA = 0;
    let textB = 0;
    for (;;) {
      if ((textA <= textB && span.aEnd < a.length) || span.bEnd >= b.length) {
        if (span.aEnd >= a.length) break;
        textA += lengthA(span.aEnd++);
      } else textB += lengthB(span.bEnd++);
      if (textA !== textB || span.aEnd === i || span.bEnd === j) continue;
      if (spell(a, i, span.aEnd, tokenizer) === spell(b, j, span.bEnd, tokenizer)) break;
    }
    spans.push(span);
    i = span.aEnd;
    j = span.bEnd;
  }
  return spans;
}

function spell(ids: ArrayLike<number>, from: number, to: number, tokenizer: ComparedTokenizer): string {
  return tokenizer.detokenize(Array.from({ length: to - from }, (_, i) => ids[from + i]!));
}

function someIn(mask: ArrayLike<number>, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (mask[i]) return true;
  return false;
}
