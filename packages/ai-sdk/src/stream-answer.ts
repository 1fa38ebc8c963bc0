import type { LanguageModelV3StreamPart } from "@ai-sdk/provider";
import type { ChatEvent } from "@cria/rollout";
import { describeCall } from "./describe-answer.js";

type SpokenKind = "text" | "reasoning";

/** Turns the events of an answer into parts of a stream: blocks of text and of reasoning, and whole calls. */
export class StreamParts {
  private open: { kind: SpokenKind; id: string } | null = null;
  private blocks = 0;

  constructor(private readonly enqueue: (part: LanguageModelV3StreamPart) => void) {}

  add(event: ChatEvent): void {
    if (event.type === "tool_call") {
      this.end();
      this.addCall(describeCall(event.call));
      return;
    }
    if (this.open?.kind !== event.type) {
      this.end();
      this.open = { kind: event.type, id: `${event.type}-${this.blocks++}` };
      this.enqueue({ type: `${event.type}-start`, id: this.open.id });
    }
    this.enqueue({ type: `${event.type}-delta`, id: this.open.id, delta: event.text });
  }

  /** Ends the open block. */
  end(): void {
    if (this.open) this.enqueue({ type: `${this.open.kind}-end`, id: this.open.id });
    this.open = null;
  }

  private addCall(call: ReturnType<typeof describeCall>): void {
    const { toolCallId: id, toolName, input } = call;
    this.enqueue({ type: "tool-input-start", id, toolName });
    this.enqueue({ type: "tool-input-delta", id, delta: input });
    this.enqueue({ type: "tool-input-end", id });
    this.enqueue(call);
  }
}
