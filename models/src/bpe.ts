/**
 * A byte-level BPE vocabulary (Sennrich et al. 2016, arXiv:1508.07909; bytes as in GPT-2), small enough to train here,
 * and the same tokenization that llama.cpp computes for tokenizer model "gpt2" with pre-tokenizer "qwen2".
 */

/** Qwen2's split: letters with one leading mark, digits one by one, punctuation, line ends, spaces. */
const SPLIT =
  /(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu;

/** GPT-2's printable stand-in for each byte. */
const BYTE_TO_CHAR: readonly string[] = (() => {
  const printable = (b: number) => (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
  let extra = 0;
  return Array.from({ length: 256 }, (_, b) => String.fromCharCode(printable(b) ? b : 256 + extra++));
})();

export const specialTokens = [
  "<|endoftext|>",
  "<|im_start|>",
  "<|im_end|>",
  "<tool_call>",
  "</tool_call>",
  "<tool_response>",
  "</tool_response>",
] as const;

const SPECIAL_SPLIT = new RegExp(`(${specialTokens.map((t) => t.replace(/[|/]/g, "\\$&")).join("|")})`);

function toCharacters(text: string): string[] {
  return [...new TextEncoder().encode(text)].map((byte) => BYTE_TO_CHAR[byte]!);
}

export interface Vocabulary {
  /** 256 bytes, then merged tokens, then special tokens. */
  tokens: string[];
  /** "left right", best first. */
  merges: string[];
}

/** Learns merges from texts until the vocabulary holds `size` tokens. */
export function trainVocabulary(texts: Iterable<string>, size: number): Vocabulary {
  const counts = new Map<string, number>();
  for (const text of texts) {
    for (const part of text.split(SPECIAL_SPLIT)) {
      if ((specialTokens as readonly string[]).includes(part)) continue;
      for (const word of part.match(SPLIT) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1);
    }
  }
  const words = [...counts].map(([word, count]) => ({ pieces: toCharacters(word), count }));
  const merges: string[] = [];
  while (256 + merges.length + specialTokens.length < size) {
    const pairs = new Map<string, number>();
    for (const { pieces, count } of words) {
      for (let i = 0; i + 1 < pieces.length; i++) {
        const pair = `${pieces[i]} ${pieces[i + 1]}`;
        pairs.set(pair, (pairs.get(pair) ?? 0) + count);
      }
    }
    let best: string | undefined;
    for (const [pair, count] of pairs) {
      const record = best === undefined ? 0 : pairs.get(best)!;
      if (count > record || (count === record && pair < best!)) best = pair;
    }
    if (best === undefined) break;
    merges.push(best);
    const [left, right] = best.split(" ") as [string, string];
    for (const word of words) word.pieces = mergePair(word.pieces, left, right);
  }
  return { tokens: [...BYTE_TO_CHAR, ...merges.map((merge) => merge.replace(" ", "")), ...specialTokens], merges };
}

function mergePair(pieces: string[], left: string, right: string): string[] {
  const merged: string[] = [];
  for (let i = 0; i < pieces.length; i++) {
    if (pieces[i] === left && pieces[i + 1] === right) {
      merged.push(left + right);
      i++;
    } else {
      merged.push(pieces[i]!);
    }
  }
  return merged;
}

/** Tokenizes as llama.cpp will: special tokens first, then words, then merges by rank. */
export function encode(vocabulary: Vocabulary, text: string): number[] {
  const ranks = new Map(vocabulary.merges.map((merge, rank) => [merge, rank]));
  const ids = new Map(vocabulary.tokens.map((token, id) => [token, id]));
  return text.split(SPECIAL_SPLIT).flatMap((part) => {
    if ((specialTokens as readonly string[]).includes(part)) return [ids.get(part)!];
    return (part.match(SPLIT) ?? []).flatMap((word) => {
      let pieces = toCharacters(word);
      for (;;) {
        let best = Number.POSITIVE_INFINITY;
        for (let i = 0; i + 1 < pieces.length; i++)
          best = Math.min(best, ranks.get(`${pieces[i]} ${pieces[i + 1]}`) ?? best);
        if (best === Number.POSITIVE_INFINITY) break;
        const [left, right] = vocabulary.merges[best]!.split(" ") as [string, string];
        pieces = mergePair(pieces, left, right);
      }
      return pieces.map((piece) => ids.get(piece)!);
    });
  });
}
