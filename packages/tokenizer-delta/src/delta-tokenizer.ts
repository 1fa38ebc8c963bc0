import { type ChatMessage, TokenizerError, type ToolSchema } from "@cria/core";
import { BaseConversation } from "./base-conversation.js";
import type { ChatTemplate } from "./chat-template.js";

/** What delta tokenization needs of a model; every PolicyEngine has it. */
export interface TextTokenizer {
  /** `special` (default true) lets text like `<|im_end|>` become its special token. */
  tokenize(text: string, options?: { special?: boolean }): Int32Array;
  detokenize(tokenIds: ArrayLike<number>, options?: { special?: boolean }): string;
}

export interface DeltaTokenizerOptions {
  /** Token in front of a whole prompt, where the model wants one and the template does not print it. */
  bosToken?: number | null;
  /** Tokens that end a turn; the template's own end-of-turn text is found with them. */
  endOfTurnTokens: readonly number[];
  /** Further variables of the template, the same for every rendering. */
  kwargs?: Record<string, unknown>;
}

/**
 * Turns conversations into tokens piece by piece, so that what the model sampled is never tokenized again.
 * A delta is rendered against a fixed base conversation: its cost does not grow with the real one, and templates that
 * rewrite earlier turns (dropping their reasoning) cannot change it.
 */
export class DeltaTokenizer {
  private readonly base: BaseConversation;
  /** What ends an assistant's turn: from its last token's text on, and what follows the end-of-turn token. */
  private turnEnd: { withEnd: string; afterEnd: string } | undefined;

  constructor(
    readonly template: ChatTemplate,
    readonly tokenizer: TextTokenizer,
    private readonly options: DeltaTokenizerOptions,
  ) {
    const { kwargs } = options;
    this.base = new BaseConversation((messages, more) => template.render(messages, { kwargs, ...more }));
  }

  /** The template's text of a whole conversation, with the variables that every rendering gets. */
  render(messages: readonly ChatMessage[], tools: readonly ToolSchema[] = [], addGenerationPrompt = false): string {
    return this.template.render(messages, { kwargs: this.options.kwargs, tools, addGenerationPrompt });
  }

  /** Tokens of a prompt that ends where the assistant begins to speak. */
  encodePrompt(messages: readonly ChatMessage[], tools: readonly ToolSchema[] = []): Int32Array {
    return this.addBos(this.tokenizer.tokenize(this.render(messages, tools, true)));
  }

  /**
   * Tokens of what comes after a sampled assistant turn: the template's text after the end-of-turn token, `messages`
   * (tool responses or a user's text) and the next generation prompt. All of it is mask 0.
   * Tools are described in the prompt alone: some templates would otherwise print them again before a later message.
   * @param ended whether the turn was sampled up to its end-of-turn token; if not, that token is part of the delta.
   * @throws TokenizerError when the template cannot place such messages after an assistant turn.
   */
  encodeDelta(messages: readonly ChatMessage[], ended: boolean): Int32Array {
    const ids = this.tokenizer.tokenize(this.base.renderAfterAssistant(messages, true));
    if (!ended) return ids;
    // A tool's own text comes later than the end of the turn, whatever tokens it spells out.
    const end = ids.findIndex((id) => this.options.endOfTurnTokens.includes(id));
    return end >= 0 && this.endsWithToken() ? ids.slice(end + 1) : ids;
  }

  /**
   * A whole conversation with a mask, as supervised training sees it: 1 on each token of assistant messages and on
   * their end-of-turn token, 0 elsewhere. Every assistant message is tokenized by itself, as if it had been sampled;
   * what follows the last of them is left out.
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
    const text = this.base.renderAssistant(message);
    const { afterEnd } = this.findTurnEnd();
    if (!text.endsWith(afterEnd)) {
      throw new TokenizerError("ends assistant turns in more than one way", {
        code: "tokenizer/not-incremental",
        subject: "chat template",
        expected: `a turn that ends with ${JSON.stringify(afterEnd)}`,
        received: JSON.stringify(text.slice(-120)),
      });
    }
    return this.tokenizer.tokenize(text.slice(0, text.length - afterEnd.length));
  }

  /** Tokens of a whole conversation as the template prints it, for comparisons. */
  encodeWhole(messages: readonly ChatMessage[], tools: readonly ToolSchema[] = []): Int32Array {
    return this.addBos(this.tokenizer.tokenize(this.render(messages, tools)));
  }

  private addBos(ids: Int32Array): Int32Array {
    const bos = this.options.bosToken;
    if (bos === null || bos === undefined || ids[0] === bos) return ids;
    return Int32Array.from([bos, ...ids]);
  }

  private endsWithToken(): boolean {
    const { withEnd, afterEnd } = this.findTurnEnd();
    return withEnd.length > afterEnd.length;
  }

  private findTurnEnd(): { withEnd: string; afterEnd: string } {
    if (this.turnEnd === undefined) {
      const withEnd = this.base.renderAfterAssistant([], false);
      const tokens = this.tokenizer.tokenize(withEnd);
      const at = tokens.findIndex((token) => this.options.endOfTurnTokens.includes(token));
      this.turnEnd = { withEnd, afterEnd: at < 0 ? withEnd : this.tokenizer.detokenize(tokens.slice(at + 1)) };
    }
    return this.turnEnd;
  }
}
