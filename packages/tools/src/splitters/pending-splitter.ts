import type { OnSpoken, SpokenKind, TurnSplitter } from "./turn-splitter.js";

/** A splitter that keeps the text which is not decided yet. */
export abstract class PendingSplitter implements TurnSplitter {
  /** Text that is not decided yet, and where in the turn it begins. */
  protected pending = "";
  protected start = 0;
  /** Length of `pending` from which on it is worth another look: it grows by a quarter, which keeps the time linear. */
  protected nextLook = 0;
  /** Whether a call was found: nothing is reported any more. */
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

  /** Reports what is sure, and drops it. */
  protected abstract split(): void;

  /** What the pending text is if the turn ends here; null where it may be a call. */
  protected abstract findOpenKind(): SpokenKind | null;

  protected drop(count: number): void {
    this.pending = this.pending.slice(count);
    this.start += count;
  }
}
