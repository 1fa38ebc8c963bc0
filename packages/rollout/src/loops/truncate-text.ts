/** Side of a tool response that is cut away. */
export type TruncateSide = "left" | "right" | "middle";

const MARK = "(truncated)";

export interface TruncateOptions {
  /** In tokens. */
  maxTokens: number;
  /** In characters; 0 means no such limit. */
  maxChars: number;
  side: TruncateSide;
}

export interface TextCodec {
  tokenize(text: string, options?: { special?: boolean }): Int32Array;
  detokenize(ids: ArrayLike<number>): string;
}

/**
 * Truncates a tool's text to its limits and marks the cut. Its time grows with the limits, not with the text: a
 * response of a megabyte must not hold up other conversations.
 */
export function truncateText(
  text: string,
  options: TruncateOptions,
  codec: TextCodec,
): { text: string; truncated: boolean } {
  let result = text;
  if (options.maxChars > 0 && text.length > options.maxChars) {
    const [head, tail] = shareLimit(options.maxChars, options.side);
    result = copy(sliceWhole(text, 0, head) + MARK + sliceWhole(text, text.length - tail, text.length));
  }
  if (exceedsTokens(result, options.maxTokens, codec)) {
    const [head, tail] = shareLimit(options.maxTokens, options.side);
    result = takeHead(result, head, codec) + MARK + takeTail(result, tail, codec);
  }
  return { text: result, truncated: result !== text };
}

/** True if a text has more than `limit` tokens. Stops counting there. */
export function exceedsTokens(text: string, limit: number, codec: Pick<TextCodec, "tokenize">): boolean {
  // A token is at least one UTF-8 byte, and a UTF-16 unit is at most three.
  if (text.length * 3 <= limit) return false;
  return readTokens(text, limit + 1, "head", codec).length > limit;
}

/** Number of units to keep at the beginning and at the end. */
function shareLimit(limit: number, side: TruncateSide): [head: number, tail: number] {
  if (side === "left") return [0, limit];
  if (side === "right") return [limit, 0];
  const head = Math.floor(limit / 2);
  return [head, limit - head];
}

// A token split by the cut decodes to replacement characters, which the text did not contain.
function takeHead(text: string, count: number, codec: TextCodec): string {
  return codec.detokenize(readTokens(text, count, "head", codec).slice(0, count)).replace(/\uFFFD+$/, "");
}

function takeTail(text: string, count: number, codec: TextCodec): string {
  if (count === 0) return "";
  return codec.detokenize(readTokens(text, count, "tail", codec).slice(-count)).replace(/^\uFFFD+/, "");
}

/** Extra characters to read, because the edge of a window may split a token. */
const EDGE = 64;

/** Tokenizes one end of a text: at least `count` tokens, or the whole text. */
function readTokens(text: string, count: number, end: "head" | "tail", codec: Pick<TextCodec, "tokenize">): Int32Array {
  for (let width = 4 * count + EDGE; ; width *= 2) {
    if (width >= text.length) return codec.tokenize(text, { special: false });
    const piece = end === "head" ? sliceWhole(text, 0, width) : sliceWhole(text, text.length - width, text.length);
    const ids = codec.tokenize(piece, { special: false });
    if (ids.length >= count + EDGE) return ids;
  }
}

/** A slice that cuts no surrogate pair. */
function sliceWhole(text: string, start: number, end: number): string {
  const isLow = (at: number) => at > 0 && at < text.length && (text.charCodeAt(at) & 0xfc00) === 0xdc00;
  return text.slice(isLow(start) ? start + 1 : start, isLow(end) ? end - 1 : end);
}

/**
 * Copies a slice: V8 would keep the whole parent string alive, a megabyte for a few characters, as long as the
 * trajectory lives.
 */
function copy(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le");
}
