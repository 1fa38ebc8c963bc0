/** Something that carries bytes, or does work, at a rate: first come, first served. */
export class Pipe {
  private freeAt = 0;

  /** @param rate bytes (or units of work) per second; may be infinite. */
  constructor(private readonly rate: number) {}

  /** @returns when the last byte is through, for bytes that are there from `at` on. */
  take(at: number, bytes: number): number {
    this.freeAt = Math.max(at, this.freeAt) + bytes / this.rate;
    return this.freeAt;
  }
}

/** Bytes that pass several pipes at once, as a stream of small pieces: the slowest decides, unless one is held by others. */
export function pass(at: number, bytes: number, pipes: readonly Pipe[]): number {
  let end = at;
  for (const pipe of pipes) end = Math.max(end, pipe.take(at, bytes));
  return end;
}
