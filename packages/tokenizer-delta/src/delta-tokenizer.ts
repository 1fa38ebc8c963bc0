import { type ChatMessage, TokenizerError, type ToolSchema } from "@cria/core";
import { BaseConversation } from "./base-conversation.js";
import type { ChatTemplate } from "./chat-template.js";
import { SpecialTokens, type TextTokenizer } from "./text-tokenizer.js";

export interface DeltaTokenizerOptions {
  /** Token in front of a whole prompt, where the model wants one and the template does not print it. */
  bosToken?: number | null;
  /** Tokens that end a turn; the template's own end-of-turn text is found with them. */
  endOfTurnTokens: readonly number[];
  /** Further variables of the template, the same for every rendering. */
  kwargs?: Record<string, unknown>;
}

/** An assistant message as sampled tokens. */
export interface AssistantTokens {
  tokenIds: Int32Array;
  /** Whether they end with the end-of-turn token; some templates leave it to what comes next. */
  ended: boolean;
  /** Whether they follow the whole generation prompt; else its opening must be left out before them. */
  continuesOpening: boolean;
}

/**
 * Turns conversations into tokens piece by piece, so that what the model sampled is never tokenized again.
 * A delta is rendered against a fixed base conversation: its cost does not grow with the real one, and templates that
 * rewrite earlier turns (dropping their reasoning) cannot change it.
 */
export class DeltaTokenizer {
  readonly specialTokens: SpecialTokens;
  /** Token in front of a whole prompt; null where the model wants none. */
  readonly bosToken: number | null;
  private readonly base: BaseConversation;
  private endTexts: string[] | undefined;
  /** By shape of the base conversation. */
  private readonly turnEnds = new Map<string, TurnEnd>();

  constructor(
    readonly template: ChatTemplate,
    readonly tokenizer: TextTokenizer,
    private readonly options: DeltaTokenizerOptions,
  ) {
    const { kwargs } = options;
    this.bosToken = options.bosToken ?? null;
    this.specialTokens = new SpecialTokens(tokenizer);
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
   * Some templates want `name` and `tool_call_id` of tool messages.
   * @param ended whether the turn was sampled up to its end-of-turn token; if not, that token is part of the delta.
   * @throws TokenizerError when the template cannot place such messages after an assistant turn.
   */
  encodeDelta(messages: readonly ChatMessage[], ended: boolean): Int32Array {
    return this.tokenizer.tokenize(this.renderDelta(messages, ended));
  }

  /** The text that `encodeDelta` tokenizes. */
  renderDelta(messages: readonly ChatMessage[], ended: boolean): string {
    if (messages.length === 0) {
      throw new TokenizerError("has no message", {
        code: "tokenizer/empty-delta",
        subject: "delta",
        expected: "at least one message after the assistant's turn",
      });
    }
    const { text, shape, renderTransition } = this.base.renderAfterAssistant(messages, true);
    let end = this.turnEnds.get(shape);
    if (!end || !text.startsWith(end.closing)) {
      end = this.findTurnEnd(renderTransition());
      this.turnEnds.set(shape, end);
    }
    const rest = text.slice(end.closing.length);
    return ended ? rest : end.endText + rest;
  }

  /**
   * A whole conversation with a mask, as supervised training sees it: 1 on each token of assistant messages and on
   * their end-of-turn token, 0 elsewhere. Every assistant message is tokenized by itself, as if it had been sampled;
   * what follows the last of them is left out. A generation prompt that opens the reasoning does so only before
   * messages that have some.
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
    let previous: AssistantTokens | undefined;
    for (const message of messages) {
      if (message.role !== "assistant") {
        pending.push(message);
        continue;
      }
      const after = pending.at(-1)?.role === "tool" ? "tool" : "user";
      const said = this.encodeAssistant(message, after);
      const start = ids.length;
      let text = previous ? this.renderDelta(pending, previous.ended) : this.render(pending, tools, true);
      if (!said.continuesOpening) text = text.slice(0, text.length - this.base.renderOpening(after).length);
      const heard = this.tokenizer.tokenize(text);
      add(previous ? heard : this.addBos(heard), 0);
      // The end-of-turn token is the model's to say, whoever prints it.
      if (previous && !previous.ended && this.options.endOfTurnTokens.includes(ids[start]!)) mask[start] = 1;
      add(said.tokenIds, 1);
      previous = said;
      pending = [];
    }
    return { tokenIds: Int32Array.from(ids), mask: Uint8Array.from(mask) };
  }

  /**
   * An assistant message as sampled tokens: its text and, where the template prints it, the end-of-turn token.
   * @param after who spoke before it; some templates begin the turn in another way after a tool's answer.
   * @throws TokenizerError when the template does not continue its own generation prompt with this message.
   */
  encodeAssistant(message: ChatMessage, after: "user" | "tool" = "user"): AssistantTokens {
    const { text, continuesOpening } = this.base.renderAssistant(message, after);
    const end = findLast(text, this.listEndTexts());
    return {
      tokenIds: this.tokenizer.tokenize(end < 0 ? text : text.slice(0, end)),
      ended: end >= 0,
      continuesOpening,
    };
  }

  /**
   * What the generation prompt says in the assistant's name, for example `<think>` and a newline; often empty. A
   * message that records a sampled turn holds this text and then what was sampled.
   */
  renderOpening(after: "user" | "tool" = "user"): string {
    return this.base.renderOpening(after);
  }

  /** Tokens of a whole conversation as the template prints it, for comparisons. */
  encodeWhole(
    messages: readonly ChatMessage[],
    tools: readonly ToolSchema[] = [],
    addGenerationPrompt = false,
  ): Int32Array {
    return this.addBos(this.tokenizer.tokenize(this.render(messages, tools, addGenerationPrompt)));
  }

  /** Puts the BOS token in front of a whole prompt where it belongs and is not there yet. */
  addBos(ids: Int32Array): Int32Array {
    if (this.bosToken === null || ids[0] === this.bosToken) return ids;
    return Int32Array.from([this.bosToken, ...ids]);
  }

  /** Texts of the tokens that end a turn. */
  listEndTexts(): readonly string[] {
    this.endTexts ??= this.options.endOfTurnTokens
      .map((id) => this.tokenizer.detokenize([id]))
      .filter((text) => text !== "");
    return this.endTexts;
  }

  /**
   * How a turn ends in the text between the assistant's last word and a next message's first. With none of the model's
   * own end-of-turn tokens there, the first special token counts: gpt-oss samples `<|return|>`, and its template
   * prints `<|end|>` in that place once the conversation goes on.
   */
  private findTurnEnd(transition: string): TurnEnd {
    let endTexts = this.listEndTexts().filter((text) => transition.includes(text));
    if (endTexts.length === 0) {
      const special = Array.from(this.tokenizer.tokenize(transition), (id) => this.specialTokens.textOf(id));
      endTexts = special.filter((text) => text !== null).slice(0, 1);
    }
    const [first] = endTexts.map((text) => ({ at: transition.indexOf(text), text })).sort((a, b) => a.at - b.at);
    if (!first) return { closing: "", endText: "" };
    return { closing: transition.slice(0, first.at + first.text.length), endText: first.text };
  }
}

interface TurnEnd {
  /** From the assistant's last word through the end-of-turn text. */
  closing: string;
  endText: string;
}

/** Where the last occurrence of any of `parts` ends; -1 when there is none. */
function findLast(text: string, parts: readonly string[]): number {
  let end = -1;
  for (const part of parts) {
    const at = text.lastIndexOf(part);
    if (at >= 0) end = Math.max(end, at + part.length);
  }
  return end;
}
