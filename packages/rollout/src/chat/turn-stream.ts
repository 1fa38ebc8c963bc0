import type { SpokenKind, TurnReader, TurnSplitter } from "@cria/tools";
import type { ChatAnswerMessage, ChatEvent } from "./chat-model.js";
import { isFiller } from "./read-answer.js";

/**
 * Tells of a turn while it is sampled: thoughts and text as soon as it is sure that they belong to no call, all the rest
 * at the end. Joined, `text` events are the message's `content`, and `reasoning` events its `reasoning_content`, however
 * the text was cut.
 */
export class TurnStream {
  private readonly splitter: TurnSplitter;
  private readonly spoken: Record<SpokenKind, TrimmedText>;

  /**
   * @param reader of the turn; the same that makes the message.
   * @param onEvent called with every event, in order.
   */
  constructor(
    reader: TurnReader,
    private readonly onEvent: (event: ChatEvent) => void,
  ) {
    this.spoken = {
      reasoning: new TrimmedText((text) => /^\s*$/.test(text)),
      // Said in front of calls alone it would say nothing.
      text: new TrimmedText(isFiller),
    };
    this.splitter = reader.split((kind, text) => {
      const other = kind === "text" ? "reasoning" : "text";
      this.tell(other);
      this.spoken[kind].add(text);
    });
  }

  /** Takes the next piece of the turn, of which the first is what the generation prompt says in its name. */
  push(text: string): void {
    this.splitter.push(text);
    this.tell("reasoning");
    this.tell("text");
  }

  /** Tells what is missing of the whole message: that which `readAnswer` makes of all that was pushed. */
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

/** A text that grows, without white space around it as far as that is known. */
class TrimmedText {
  /** Characters taken so far. */
  taken = 0;
  private ready = "";
  /** What only text to come can make part of it. */
  private held = "";
  private hasBegun = false;

  /** @param isNothing whether a text that it begins with may turn out to be left out. */
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
