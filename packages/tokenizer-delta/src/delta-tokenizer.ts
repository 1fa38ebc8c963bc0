import { type ChatMessage, TokenizerError, type ToolSchema } from "@cria/core";
import type { ChatTemplate, RenderOptions } from "./chat-template.js";

/** What delta tokenization needs of a model; every PolicyEngine has it. */
export interface TextTokenizer {
  tokenize(text: string, options?: { special?: boolean }): Int32Array;
  detokenize(tokenIds: ArrayLike<number>, options?: { special?: boolean }): string;
}

export interface DeltaTokenizerOptions {
  /** Token in front of a whole prompt, where the model wants one and the template does not print it. */
  bosToken?: number | null;
  /** Tokens that end a turn; the template's own end-of-turn text is found with them. */
  endOfTurnTokens: readonly number[];
  kwargs?: Record<string, unknown>;
}

/**
 * Turns conversations into tokens piece by piece, so that what the model sampled is never tokenized again.
 * A delta is rendered against a fixed base conversation of one system and one user message: its cost does not grow with
 * the conversation, and templates that rewrite earlier turns (dropping their reasoning) cannot change it.
 */
export class DeltaTokenizer {
  /** Base conversation for deltas: what follows an assistant turn depends on that turn's end alone. */
  private readonly base: ChatMessage[] = [
    { role: "system", content: "s" },
    { role: "user", content: "u" },
    { role: "assistant", content: "a" },
  ];
  private baseText: string | undefined;
  private promptText: string | undefined;
  /** Text between the sampled end-of-turn token and the next message ("\n" in ChatML); found once. */
  private turnTail: string | undefined;

  constructor(
    readonly template: ChatTemplate,
    readonly tokenizer: TextTokenizer,
    private readonly options: DeltaTokenizerOptions,
  ) {}

  /** Tokens of a prompt that ends where the assistant begins to speak. */
  encodePrompt(messages: readonly ChatMessage[], tools: readonly ToolSchema[] = []): Int32Array {
    const ids = this.tokenizer.tokenize(this.render(messages, { tools, addGenerationPrompt: true }));
    const bos = this.options.bosToken;
    if (bos === null || bos === undefined || ids[0] === bos) return ids;
    return Int32Array.from([bos, ...ids]);
  }

  /**
   * Tokens of what comes after a sampled assistant turn: the template's text after the end-of-turn token, `messages`
   * (tool responses or a user's text) and the next generation prompt. All of it is mask 0.
   * Tools are described in the prompt alone: some templates would otherwise print them again before a later message.
   * @param ended whether the turn was sampled up to its end-of-turn token; if not, that token is part of the delta.
   */
  encodeDelta(messages: readonly ChatMessage[], ended: boolean): Int32Array {
    this.baseText ??= this.render(this.base, {});
    const before = this.baseText;
    const after = this.render([...this.base, ...messages], { addGenerationPrompt: true });
    if (!after.startsWith(before)) {
      throw new TokenizerError("rewrites an earlier turn when a message follows it", {
        code: "tokenizer/not-incremental",
        subject: "chat template",
        expected: "a rendering that begins with the rendering of the messages before",
        received: JSON.stringify(after.slice(0, 200)),
        remedy: "use a template whose assistant turns do not change when later messages arrive",
      });
    }
    const tail = this.findTurnTail();
    return this.tokenizer.tokenize((ended ? tail.afterEnd : tail.withEnd) + after.slice(before.length));
  }

  /**
   * A whole conversation with a mask, as supervised training sees it: 1 on each token of assistant messages and on
   * their end-of-turn token, 0 elsewhere. Every assistant message is tokenized by itself, as if it had been sampled.
   */
  encodeMessagesWithMask(
    messages: readonly ChatMessage[],
    tools: readonly ToolSchema[] = [],
  ): { tokenIds: Int32Array; mask: Uint8Array } {
    const ids: number[] = [];
    const mask: number[] = [];
    const add = (tokens: ArrayLike<number>, value: 0 | 1) => {
      for (let i = 0; i < tokens.length; i++) {
        ids.push(tokens[i]!);
        mask.push(value);
      }
    };
    let pending: ChatMessage[] = [];
    let spoken = false;
    for (const message of messages) {
      if (message.role !== "assistant") {
        pending.push(message);
        continue;
      }
      add(spoken ? this.encodeDelta(pending, true) : this.encodePrompt(pending, tools), 0);
      add(this.encodeAssistant(message), 1);
      pending = [];
      spoken = true;
    }
    return { tokenIds: Int32Array.from(ids), mask: Uint8Array.from(mask) };
  }

  /** An assistant message as sampled tokens: its text and the end-of-turn token. */
  encodeAssistant(message: ChatMessage): Int32Array {
    const context = this.base.slice(0, 2);
    this.promptText ??= this.render(context, { addGenerationPrompt: true });
    const before = this.promptText;
    const after = this.render([...context, message], {});
    const tail = this.findTurnTail();
    const end = after.length - tail.afterEnd.length;
    if (!after.startsWith(before) || after.slice(end) !== tail.afterEnd) {
      throw new TokenizerError("does not print an assistant turn after its generation prompt", {
        code: "tokenizer/not-incremental",
        subject: "chat template",
        expected: `a rendering that begins with ${JSON.stringify(before.slice(-40))}`,
        received: JSON.stringify(after.slice(-120)),
      });
    }
    return this.tokenizer.tokenize(after.slice(before.length, end));
  }

  private render(messages: readonly ChatMessage[], options: RenderOptions): string {
    return this.template.render(messages, { kwargs: this.options.kwargs, ...options });
  }

  /** What the template prints after an assistant's content: with its end-of-turn token, and what follows that token. */
  private findTurnTail(): { withEnd: string; afterEnd: string } {
    if (this.turnTail === undefined) {
      const rendered = this.render(this.base, {});
      this.turnTail = rendered.slice(rendered.lastIndexOf("a") + 1);
      const prompt = this.render(this.base.slice(0, 2), { addGenerationPrompt: true });
      if (rendered.startsWith(`${prompt}a`)) this.turnTail = rendered.slice(prompt.length + 1);
    }
    const withEnd = this.turnTail;
    const tokens = this.tokenizer.tokenize(withEnd);
    const at = tokens.findIndex((token) => this.options.endOfTurnTokens.includes(token));
    const afterEnd = at < 0 ? withEnd : this.tokenizer.detokenize(tokens.slice(at + 1));
    return { withEnd, afterEnd };
  }
}
