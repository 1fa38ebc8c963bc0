/** The side of a tool response that is cut away. */
export type TruncateSide = "left" | "right" | "middle";

const MARK = "(truncated)";

/** At most `limit` units of `items`, with the cut marked where units are characters. */
export function cutItems<T>(
  items: readonly T[],
  limit: number,
  side: TruncateSide,
): { head: readonly T[]; tail: readonly T[] } {
  if (side === "left") return { head: [], tail: items.slice(items.length - limit) };
  if (side === "right") return { head: items.slice(0, limit), tail: [] };
  const head = Math.floor(limit / 2);
  return { head: items.slice(0, head), tail: items.slice(items.length - (limit - head)) };
}

export interface TruncateOptions {
  /** In tokens. */
  maxTokens: number;
  /** In characters; 0 means no such limit. */
  maxChars: number;
  side: TruncateSide;
}

/** Shortens a tool's text to its limits; a mark stands where something was cut. */
export function truncateText(
  text: string,
  options: TruncateOptions,
  tokenizer: {
    tokenize(text: string, options?: { special?: boolean }): Int32Array;
    detokenize(ids: ArrayLike<number>): string;
  },
): { text: string; truncated: boolean } {
  let result = text;
  if (options.maxChars > 0 && result.length > options.maxChars) {
    const { head, tail } = cutItems([...result], options.maxChars, options.side);
    result = head.join("") + MARK + tail.join("");
  }
  // A token is at least one character: shorter texts need no count.
  if (result.length > options.maxTokens) {
    const ids = [...tokenizer.tokenize(result, { special: false })];
    if (ids.length > options.maxTokens) {
      const { head, tail } = cutItems(ids, options.maxTokens, options.side);
      result = tokenizer.detokenize(head as number[]) + MARK + tokenizer.detokenize(tail as number[]);
    }
  }
  return { text: result, truncated: result !== text };
}
