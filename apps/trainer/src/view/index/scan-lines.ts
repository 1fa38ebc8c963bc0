import { open } from "node:fs/promises";
import { setImmediate as yieldToOthers } from "node:timers/promises";

/** A line of a file, without its line feed. */
export interface ScannedLine {
  /** Offset of its first byte. */
  at: number;
  /** Null: it is too long to be read. */
  bytes: Buffer | null;
  length: number;
  /** True if a line feed ends it; the last line may be unfinished. */
  isWhole: boolean;
}

const CHUNK = 1 << 20;
/** Bytes of the longest line that is read: a longer one does not fit into a string. */
export const LONGEST_LINE = 256 << 20;
/** Milliseconds of work after which the event loop gets a turn. */
const SLICE_MS = 8;

/**
 * Lines of a file from an offset on, yielding to the event loop in between.
 * @throws the signal's reason; errors of the file system.
 */
export async function* scanLines(path: string, from = 0, signal?: AbortSignal): AsyncGenerator<ScannedLine> {
  const file = await open(path, "r");
  try {
    const buffer = Buffer.alloc(CHUNK);
    let parts: Buffer[] = [];
    let at = from;
    let end = from;
    let turn = performance.now();
    const take = (last: Buffer, isWhole: boolean): ScannedLine => {
      const length = end - at;
      const bytes = length > LONGEST_LINE ? null : Buffer.concat([...parts, last]);
      const line = { at, bytes, length, isWhole };
      parts = [];
      at = end + 1;
      return line;
    };
    for (let offset = from; ; ) {
      const { bytesRead } = await file.read(buffer, 0, CHUNK, offset);
      if (bytesRead === 0) break;
      offset += bytesRead;
      const chunk = buffer.subarray(0, bytesRead);
      let start = 0;
      for (let feed = chunk.indexOf(10); feed >= 0; feed = chunk.indexOf(10, start)) {
        end += feed - start;
        yield take(chunk.subarray(start, feed), true);
        end++;
        start = feed + 1;
        if (performance.now() - turn < SLICE_MS) continue;
        await yieldToOthers();
        signal?.throwIfAborted();
        turn = performance.now();
      }
      end += bytesRead - start;
      if (end - at <= LONGEST_LINE) parts.push(Buffer.from(chunk.subarray(start)));
      else parts = [];
      signal?.throwIfAborted();
    }
    if (end > at) yield take(Buffer.alloc(0), false);
  } finally {
    await file.close();
  }
}
