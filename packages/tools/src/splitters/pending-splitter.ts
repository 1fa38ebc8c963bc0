import type { OnSpoken, SpokenKind, TurnSplitter } from "./turn-splitter.js";

/** A splitter that keeps the undecided text. */
export abstract class PendingSplitter implements TurnSplitter {
  /** The undecided text, and its index in the turn. */
  protected pending = "";
  protected start = 0;
  /** Length of `pending` at which to look again: it grows by a quarter, which keeps the time linear. */
  protected nextLook = 0;
  /** True once a call was found: nothing is reported after it. */
  protected isHeld = false;

  constructor(protected readonly onSpoken: OnSpoken) {}

  push(text: string): void {
    if (this.isHeld) return;
    this.pending += text;
    if (this.pending.length >= this.nextLook) this.split();
  }

  finish(): number {
    if (!this.isHeld) this.split();
    const kind = this.findOpenKind();
    if (kind === null || this.isHeld) return this.start;
    if (this.pending !== "") this.onSpoken(kind, this.pending);
    return this.start + this.pending.length;
  }

  /** Reports the decided text, and drops it. */
  protected abstract split(): void;

  /** The kind of the pending text if the turn ends here; null when it may be a call. */
  protected abstract findOpenKind(): SpokenKind | null;

  protected drop(count: number): void {
    this.pending = this.pending.slice(count);
    this.start += count;
  }
}
