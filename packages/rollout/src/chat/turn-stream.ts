import type { SpokenKind, TurnReader, TurnSplitter } from "@cria/tools";
import type { ChatAnswerMessage, ChatEvent } from "./chat-model.js";
import { isFiller } from "./read-answer.js";

/**
 * Reports a turn while it is sampled: thoughts and text as soon as they cannot belong to a call, the rest at the
 * end. Joined, the `text` events equal the message's `content`, and the `reasoning` events its `reasoning_content`,
 * however the text was split.
 */
export class TurnStream {
  private readonly splitter: TurnSplitter;
  private readonly spoken: Record<SpokenKind, TrimmedText>;

  /**
   * @param reader the turn's format, the same one that makes the message.
   * @param onEvent called with every event, in order.
   */
  constructor(
    reader: TurnReader,
    private readonly onEvent: (event: ChatEvent) => void,
  ) {
    this.spoken = {
      reasoning: new TrimmedText((text) => /^\s*$/.test(text)),
      // Separators before calls are dropped.
      text: new TrimmedText(isFiller),
    };
    this.splitter = reader.split((kind, text) => {
      const other = kind === "text" ? "reasoning" : "text";
      this.tell(other);
      this.spoken[kind].add(text);
    });
  }

  /** Adds the next piece of the turn. The first piece is the part that the generation prompt already contains. */
  push(text: string): void {
    this.splitter.push(text);
    this.tell("reasoning");
    this.tell("text");
  }

  /** Reports the rest of the whole message, as `readAnswer` reads it from all pushed text. */
  end(message: ChatAnswerMessage): void {
    this.tellRest("reasoning", message.reasoning_content ?? "");
    this.tellRest("text", message.content);
    for (const [index, call] of (message.tool_calls ?? []).entries()) this.onEvent({ type: "tool_call", index, call });
  }

  private tell(kind: SpokenKind): void {
    const text = this.spoken[kind].take();
    if (text !== "") this.onEvent({ type: kind, text });
  }

  private tellRest(kind: SpokenKind, whole: string): void {
    const rest = whole.slice(this.spoken[kind].taken);
    if (rest !== "") this.onEvent({ type: kind, text: rest });
  }
}

/** A growing text, trimmed as far as its end is known. */
class TrimmedText {
  /** Characters taken so far. */
  taken = 0;
  private ready = "";
  /** White space that becomes part of the text only if more text follows. */
  private held = "";
  private hasBegun = false;

  /** @param isNothing true for a leading text that may still be dropped. */
  constructor(private readonly isNothing: (text: string) => boolean) {}

  add(text: string): void {
    const isHeld = this.hasBegun ? text.trim() === "" : this.isNothing(text);
    if (isHeld) {
      this.held += text;
      return;
    }
    const grown = this.hasBegun ? this.held + text : (this.held + text).trimStart();
    const sure = grown.trimEnd();
    this.hasBegun = true;
    this.ready += sure;
    this.held = grown.slice(sure.length);
  }

  take(): string {
    const { ready } = this;
    this.taken += ready.length;
    this.ready = "";
    return ready;
  }
}
