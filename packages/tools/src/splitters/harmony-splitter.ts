import { beginsAtEnd } from "../parsers/call-start.js";
import { escapePattern } from "../parsers/escape-pattern.js";
import { harmonyMarks, readHarmonyHead } from "../parsers/harmony.js";
import { PendingSplitter } from "./pending-splitter.js";
import { countMatchingEnd, type SpokenKind } from "./turn-splitter.js";

/** Ends of a message: an end mark, or the next message's start. */
const ends = [...harmonyMarks.ends, harmonyMarks.start];
const MARK = new RegExp([...ends, harmonyMarks.message].map(escapePattern).join("|"), "g");
const END = new RegExp(ends.map(escapePattern).join("|"), "g");

/**
 * Splits turns of gpt-oss: lists of messages. Those on the channel `final` are said, the others thought. A message
 * addressed to `functions.name` is a call.
 */
export class HarmonySplitter extends PendingSplitter {
  /** The kind of the open message's body; null before it. */
  private kind: SpokenKind | null = null;

  protected findOpenKind(): SpokenKind | null {
    return this.kind;
  }

  protected split(): void {
    this.nextLook = 0;
    while (!this.isHeld && (this.kind === null ? this.readHeader() : this.readBody(this.kind)));
    if (this.kind === null) this.nextLook = this.pending.length + (this.pending.length >> 2);
  }

  /** Reads the header of the next message; false when more text is needed. */
  private readHeader(): boolean {
    const { pending } = this;
    const { start, message } = harmonyMarks;
    const head = pending.search(/\S/);
    if (head < 0 || beginsAtEnd(start, pending, head)) return false;
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
    // A line break separates it from earlier messages.
    this.onSpoken(this.kind, "\n");
    if (hasHeader) this.drop(mark.index + mark[0].length);
    else this.endMessage(this.kind, mark);
    return true;
  }

  /** Reports the open message's body as far as it has arrived; false when more text is needed. */
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
    // The mark stays when it is the next message's.
    this.drop(end.index + (end[0] === harmonyMarks.start ? 0 : end[0].length));
    this.kind = null;
  }
}
