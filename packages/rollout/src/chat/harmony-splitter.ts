import { harmonyMarks, readHarmonyHead } from "@cria/tools";
import { countMatchingEnd, type OnSpoken, type SpokenKind, type TurnSplitter } from "./turn-splitter.js";

/** What ends a message: a mark of its own, or the next message's. */
const ends = [...harmonyMarks.ends, harmonyMarks.start];
const MARK = new RegExp([...ends, harmonyMarks.message].map(escapePattern).join("|"), "g");
const END = new RegExp(ends.map(escapePattern).join("|"), "g");

/**
 * Splits turns of gpt-oss: lists of messages, of which those on the channel `final` are said and the others thought. A
 * message that is addressed to `functions.name` is a call.
 */
export class HarmonySplitter implements TurnSplitter {
  /** Text that is not decided yet, and where in the turn it begins: with a message, or within its body. */
  private pending = "";
  private start = 0;
  /** What the open message's body is; null before it. */
  private kind: SpokenKind | null = null;
  /** Length of `pending` from which on it is worth another look: it grows by a quarter, which keeps the time linear. */
  private nextLook = 0;
  private isHeld = false;

  constructor(private readonly onSpoken: OnSpoken) {}

  push(text: string): void {
    if (this.isHeld) return;
    this.pending += text;
    if (this.pending.length >= this.nextLook) this.split();
  }

  finish(): number {
    if (!this.isHeld) this.split();
    if (this.kind === null || this.isHeld) return this.start;
    this.onSpoken(this.kind, this.pending);
    return this.start + this.pending.length;
  }

  private split(): void {
    this.nextLook = 0;
    while (!this.isHeld && (this.kind === null ? this.readHeader() : this.readBody(this.kind)));
    if (this.kind === null) this.nextLook = this.pending.length + (this.pending.length >> 2);
  }

  /** Reads the header of the next message; false where more text must come first. */
  private readHeader(): boolean {
    const { pending } = this;
    const { start, message } = harmonyMarks;
    const head = pending.search(/\S/);
    if (head < 0 || isBeginning(start, pending.slice(head))) return false;
    MARK.lastIndex = pending.startsWith(start, head) ? head + start.length : head;
    const mark = MARK.exec(pending);
    if (mark === null) return false;
    // A message without a header is said.
    const hasHeader = mark[0] === message;
    const { channel, recipient } = readHarmonyHead(hasHeader ? pending.slice(0, mark.index) : "");
    if (recipient.startsWith("functions.")) {
      this.isHeld = true;
      return false;
    }
    this.kind = channel === "final" || channel === "" ? "text" : "reasoning";
    // Separates it from earlier messages.
    this.onSpoken(this.kind, "\n");
    if (hasHeader) this.drop(mark.index + mark[0].length);
    else this.endMessage(this.kind, mark);
    return true;
  }

  /** Reports the open message's body as far as it has come; false where more text must come first. */
  private readBody(kind: SpokenKind): boolean {
    END.lastIndex = 0;
    const end = END.exec(this.pending);
    if (end !== null) {
      this.endMessage(kind, end);
      return true;
    }
    const sure = this.pending.length - Math.max(...ends.map((mark) => countMatchingEnd(this.pending, mark)));
    if (sure > 0) this.onSpoken(kind, this.pending.slice(0, sure));
    this.drop(sure);
    return false;
  }

  private endMessage(kind: SpokenKind, end: RegExpExecArray): void {
    if (end.index > 0) this.onSpoken(kind, this.pending.slice(0, end.index));
    // The next message's mark is part of that.
    this.drop(end.index + (end[0] === harmonyMarks.start ? 0 : end[0].length));
    this.kind = null;
  }

  private drop(count: number): void {
    this.pending = this.pending.slice(count);
    this.start += count;
  }
}

function isBeginning(mark: string, text: string): boolean {
  return text.length < mark.length && mark.startsWith(text);
}

function escapePattern(text: string): string {
  return text.replace(/[|\\{}()[\]^$+*?.]/g, "\\$&");
}
