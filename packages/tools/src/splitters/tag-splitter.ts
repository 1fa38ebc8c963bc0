import { beginsAtEnd, type CallStartFinder } from "../parsers/call-start.js";
import { thinkingTags } from "../parsers/thinking.js";
import { PendingSplitter } from "./pending-splitter.js";
import { countMatchingEnd, type OnSpoken, type SpokenKind } from "./turn-splitter.js";

/** Splits turns whose thoughts stand between tags and whose calls have marks in the text. */
export class TagSplitter extends PendingSplitter {
  private readonly candidate: RegExp;
  /** The closing tag of the open thinking. */
  private closing: string | null = null;

  constructor(
    private readonly calls: CallStartFinder,
    onSpoken: OnSpoken,
  ) {
    super(onSpoken);
    this.candidate = new RegExp(`[<[]|${calls.candidate.source}`, "g");
  }

  /** Thinking without an end lasts to the end of the turn. */
  protected findOpenKind(): SpokenKind | null {
    return this.closing === null ? null : "reasoning";
  }

  protected split(): void {
    let at = 0;
    let isWaiting = false;
    while (at < this.pending.length && !isWaiting && !this.isHeld) {
      const next = this.closing === null ? this.readText(at) : this.readThoughts(at, this.closing);
      isWaiting = next === at;
      at = next;
    }
    this.drop(at);
    const left = this.pending.length;
    this.nextLook = isWaiting ? left + Math.max(1, left >> 2) : 0;
  }

  /** Reports thoughts from `at` on; returns the index that it reached. */
  private readThoughts(at: number, closing: string): number {
    const close = this.pending.indexOf(closing, at);
    if (close >= 0) {
      this.report("reasoning", at, close);
      this.closing = null;
      return close + closing.length;
    }
    const end = this.pending.length - countMatchingEnd(this.pending, closing);
    this.report("reasoning", at, end);
    return Math.max(at, end);
  }

  /** Reports text from `at` on; returns the index that it reached: `at` when more text is needed. */
  private readText(at: number): number {
    const found = this.findCandidate(at);
    this.report("text", at, found);
    if (found > at) return found;
    for (const { open, close } of thinkingTags) {
      if (this.pending.startsWith(open, at)) {
        this.closing = close;
        // A line break separates it from earlier thoughts.
        this.onSpoken("reasoning", "\n");
        return at + open.length;
      }
      if (beginsAtEnd(open, this.pending, at)) return at;
    }
    const verdict = this.calls.look(this.pending, at, this.start + at === 0);
    if (verdict === "call") this.isHeld = true;
    if (typeof verdict === "string") return at;
    if (typeof verdict === "object") return at + verdict.skip;
    const end = Math.min(at + verdict, this.pending.length);
    this.report("text", at, end);
    return end;
  }

  private findCandidate(at: number): number {
    if (this.start + at === 0) return 0;
    this.candidate.lastIndex = at;
    return this.candidate.exec(this.pending)?.index ?? this.pending.length;
  }

  private report(kind: SpokenKind, from: number, to: number): void {
    if (to > from) this.onSpoken(kind, this.pending.slice(from, to));
  }
}
