import { type ChatMessage, ConfigError, listImages, type ModelInfo, TokenizerError, type ToolSchema } from "@cria/core";
import { BaseConversation } from "./base-conversation.js";
import { ChatTemplate } from "./chat-template.js";
import { findImages, markImages, showImages } from "./image-marks.js";
import { findPlainPlaces } from "./mark-others-text.js";
import { type ImagePlacer, PieceTokenizer } from "./piece-tokenizer.js";
import { RecentResults } from "./recent-results.js";
import { ownText, type RenderedText, sliceRendered } from "./rendered-text.js";
import type { SpecialTokens } from "./special-tokens.js";
import type { TextTokenizer } from "./text-tokenizer.js";
import { TurnEnds } from "./turn-ends.js";

/** Deltas that are remembered: their number, and UTF-16 units of the longest one's messages as JSON. */
const REMEMBERED = 1024;
const LONGEST_REMEMBERED = 1024;

/** Options of `DeltaTokenizer.forModel`. */
export interface ModelTokenizerOptions {
  /** Additional variables of the template, the same for every rendering. */
  kwargs?: Record<string, unknown>;
  /**
   * true: reads text of users and tools with special tokens, so that it can end a turn or begin another one. Default
   * false: a control token that they spell stays plain text.
   */
  allowControlTokens?: boolean;
}

export interface DeltaTokenizerOptions extends ModelTokenizerOptions {
  /** Token in front of a whole prompt, added unless the template has printed it; null if the model needs none. */
  bosToken: number | null;
  /** Tokens that end a turn; they locate the template's own end-of-turn text. */
  endOfTurnTokens: readonly number[];
  /** Assigns tokens to images. Absent: messages with images are refused. */
  images?: ImagePlacer;
}

/** The properties of a model that `DeltaTokenizer.forModel` reads; every PolicyEngine has them. */
export interface TokenizedModel extends TextTokenizer {
  readonly chatTemplate: string | null;
  readonly info: Pick<ModelInfo, "path" | "bosToken" | "eosToken" | "endOfGenerationTokens" | "addBos">;
  /** Absent if the model has no projector. */
  readonly images?: ImagePlacer;
}

/**
 * Called when users or tools spell control tokens and the rendering does not show where: the text is then tokenized
 * with special tokens.
 */
export type OnUnsplit = () => void;

/** An assistant message as sampled tokens. */
export interface AssistantTokens {
  tokenIds: Int32Array;
  /** True if they end with the end-of-turn token; some templates print it only with the next message. */
  ended: boolean;
  /** True if they follow the whole generation prompt; otherwise its opening must be left out before them. */
  continuesOpening: boolean;
}

/**
 * Turns conversations into tokens piece by piece, so that sampled text is never tokenized again.
 * A delta is rendered against a fixed base conversation: its cost does not grow with the real one, and templates that
 * rewrite earlier turns (dropping their reasoning) cannot change it.
 * Text of the template, of system messages and of the assistant is read with special tokens; text of users and tools
 * never becomes a control token, whatever it spells.
 */
export class DeltaTokenizer {
  private readonly pieces: PieceTokenizer;
  /** Token in front of a whole prompt; null if the model needs none. */
  readonly bosToken: number | null;
  private readonly base: BaseConversation;
  private readonly turnEnds: TurnEnds;
  private readonly deltas = new RecentResults<string>(REMEMBERED, LONGEST_REMEMBERED);

  constructor(
    readonly template: ChatTemplate,
    readonly tokenizer: TextTokenizer,
    private readonly options: DeltaTokenizerOptions,
  ) {
    const { kwargs } = options;
    this.bosToken = options.bosToken;
    this.pieces = new PieceTokenizer(tokenizer, options.images);
    this.turnEnds = new TurnEnds(tokenizer, this.pieces, options.endOfTurnTokens);
    this.base = new BaseConversation((messages, more) => template.renderMarks(messages, { kwargs, ...more }));
  }

  /**
   * The delta tokenizer of a model, from the facts in its GGUF: chat template, BOS and EOS, tokens that end a turn.
   * @throws ConfigError when it has no chat template.
   */
  static forModel(model: TokenizedModel, options: ModelTokenizerOptions = {}): DeltaTokenizer {
    const { info, chatTemplate } = model;
    if (chatTemplate === null) {
      throw new ConfigError("has no chat template", {
        code: "config/no-chat-template",
        subject: info.path,
        expected: "the key tokenizer.chat_template in the GGUF",
        remedy: "use an instruction-tuned model, or add a template to the file",
      });
    }
    const textOf = (token: number | null) => (token === null ? "" : model.detokenize([token]));
    const template = new ChatTemplate(chatTemplate, {
      bos_token: textOf(info.bosToken),
      eos_token: textOf(info.eosToken),
    });
    return new DeltaTokenizer(template, model, {
      ...options,
      bosToken: info.addBos ? info.bosToken : null,
      endOfTurnTokens: info.endOfGenerationTokens,
      images: model.images,
    });
  }

  get specialTokens(): SpecialTokens {
    return this.pieces.specialTokens;
  }

  /**
   * The template's text of a whole conversation, with the variables of every rendering, and a placeholder for each
   * image.
   */
  render(messages: readonly ChatMessage[], tools: readonly ToolSchema[] = [], addGenerationPrompt = false): string {
    return this.template.render(messages, { kwargs: this.options.kwargs, tools, addGenerationPrompt });
  }

  /**
   * The same text, with the places of images, and of control tokens that users and tools spelled.
   * @throws ConfigError for a message with an image if the model has no projector; TokenizerError if the template does
   * not print each image once.
   */
  renderMarked(
    messages: readonly ChatMessage[],
    tools: readonly ToolSchema[] = [],
    addGenerationPrompt = false,
    onUnsplit?: OnUnsplit,
  ): RenderedText {
    const { kwargs } = this.options;
    const render = (given: readonly ChatMessage[]) =>
      this.template.renderMarks(given, { kwargs, tools, addGenerationPrompt });
    return this.mark(messages, render, onUnsplit);
  }

  /** Tokens of rendered text, without BOS. Takes time linear in the text, whatever special tokens it contains. */
  tokenize(rendered: RenderedText): Int32Array {
    return this.pieces.tokenize(rendered);
  }

  /** The same, with long texts off the event loop. */
  tokenizeAside(rendered: RenderedText): Promise<Int32Array> {
    return this.pieces.tokenizeAside(rendered);
  }

  /** Tokens of text in which nothing becomes a control token, in linear time. */
  tokenizePlain(text: string): Int32Array {
    return this.pieces.tokenizePlain(text);
  }

  /** The tokens of rendered text, cut at special tokens. */
  tokenizePieces(rendered: RenderedText): ReturnType<PieceTokenizer["tokenizePieces"]> {
    return this.pieces.tokenizePieces(rendered);
  }

  /** Number of tokens of `encodePrompt`. It places no images, and their files need not be in memory. */
  countPromptTokens(
    messages: readonly ChatMessage[],
    tools: readonly ToolSchema[] = [],
    onUnsplit?: OnUnsplit,
  ): number {
    return this.addBos(this.pieces.tokenizeUnplaced(this.renderMarked(messages, tools, true, onUnsplit))).length;
  }

  /** Tokens of a prompt that ends at the start of the assistant's turn. */
  encodePrompt(messages: readonly ChatMessage[], tools: readonly ToolSchema[] = [], onUnsplit?: OnUnsplit): Int32Array {
    return this.encodeWhole(messages, tools, true, onUnsplit);
  }

  /**
   * Tokens after a sampled assistant turn: the template's text after the end-of-turn token, `messages` (tool
   * responses or a user's text) and the next generation prompt. All of them have mask 0.
   * Tools are described only in the prompt: some templates would otherwise print them again before a later message.
   * Some templates need `name` and `tool_call_id` of tool messages.
   * @param ended true if the turn was sampled up to its end-of-turn token; otherwise that token is part of the
   * delta.
   * @throws TokenizerError when the template cannot place such messages after an assistant turn.
   */
  encodeDelta(messages: readonly ChatMessage[], ended: boolean, onUnsplit?: OnUnsplit): Int32Array {
    return this.tokenize(this.renderMarkedDelta(messages, ended, onUnsplit));
  }

  /** `encodePrompt` for prompts of any length: long texts are tokenized off the event loop. */
  async encodePromptAside(
    messages: readonly ChatMessage[],
    tools: readonly ToolSchema[] = [],
    onUnsplit?: OnUnsplit,
  ): Promise<Int32Array> {
    return this.addBos(await this.tokenizeAside(this.renderMarked(messages, tools, true, onUnsplit)));
  }

  /** The same for `encodeDelta`. */
  async encodeDeltaAside(messages: readonly ChatMessage[], ended: boolean, onUnsplit?: OnUnsplit): Promise<Int32Array> {
    return this.tokenizeAside(this.renderMarkedDelta(messages, ended, onUnsplit));
  }

  private renderMarkedDelta(messages: readonly ChatMessage[], ended: boolean, onUnsplit?: OnUnsplit): RenderedText {
    return this.mark(messages, (given) => this.renderDeltaMarks(given, ended), onUnsplit);
  }

  private mark(
    messages: readonly ChatMessage[],
    render: (messages: readonly ChatMessage[]) => string,
    onUnsplit: OnUnsplit | undefined,
  ): RenderedText {
    const marked = markImages(messages);
    if (marked.images.length > 0 && !this.options.images) throw noProjector();
    const text = render(marked.messages);
    const images = findImages(text, marked.images);
    if (this.options.allowControlTokens) return { text, plainAt: [], images };
    const plainAt = findPlainPlaces(marked.messages, text, render, this.specialTokens);
    if (!plainAt) onUnsplit?.();
    return { text, plainAt: plainAt ?? [], images };
  }

  /** The text that `encodeDelta` tokenizes, with a placeholder for each image. */
  renderDelta(messages: readonly ChatMessage[], ended: boolean): string {
    const marked = markImages(messages);
    return showImages(this.renderDeltaMarks(marked.messages, ended), marked.images);
  }

  private renderDeltaMarks(messages: readonly ChatMessage[], ended: boolean): string {
    if (messages.length === 0) {
      throw new TokenizerError("has no message", {
        code: "tokenizer/empty-delta",
        subject: "delta",
        expected: "at least one message after the assistant's turn",
      });
    }
    const render = () => this.renderFollowUp(messages, ended);
    return this.template.readsClock ? render() : this.deltas.get(JSON.stringify([messages, ended]), render);
  }

  private renderFollowUp(messages: readonly ChatMessage[], ended: boolean): string {
    const { text, shape, renderTransition } = this.base.renderAfterAssistant(messages, true);
    const { closing, endText } = this.turnEnds.find(shape, text, renderTransition);
    const rest = text.slice(closing.length);
    return ended ? rest : endText + rest;
  }

  /**
   * A whole conversation with a mask for supervised training: 1 on each token of assistant messages and on their
   * end-of-turn token, 0 elsewhere. Every assistant message is tokenized by itself, as if it had been sampled; text
   * after the last of them is left out. A generation prompt that opens the reasoning does so only before messages that
   * have some.
   */
  encodeMessagesWithMask(
    messages: readonly ChatMessage[],
    tools: readonly ToolSchema[] = [],
    onUnsplit?: OnUnsplit,
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
      let rendered = previous
        ? this.renderMarkedDelta(pending, previous.ended, onUnsplit)
        : this.renderMarked(pending, tools, true, onUnsplit);
      if (!said.continuesOpening)
        rendered = sliceRendered(rendered, 0, rendered.text.length - this.base.renderOpening(after).length);
      const heard = this.tokenize(rendered);
      add(previous ? heard : this.addBos(heard), 0);
      // The model decides its end-of-turn token, even where the template prints it.
      if (previous && !previous.ended && this.options.endOfTurnTokens.includes(ids[start]!)) mask[start] = 1;
      add(said.tokenIds, 1);
      previous = said;
      pending = [];
    }
    return { tokenIds: Int32Array.from(ids), mask: Uint8Array.from(mask) };
  }

  /**
   * An assistant message as sampled tokens: its text and, if the template prints it, the end-of-turn token.
   * @param after role of the previous message; some templates begin the turn differently after a tool's answer.
   * @throws TokenizerError when the template does not continue its own generation prompt with this message, and for one
   * with an image, which no model can sample.
   */
  encodeAssistant(message: ChatMessage, after: "user" | "tool" = "user"): AssistantTokens {
    if (listImages(message.content).length > 0) throw noSuchTurn();
    const { text, continuesOpening } = this.base.renderAssistant(markImages([message]).messages[0]!, after);
    const end = findLast(text, this.listEndTexts());
    return {
      tokenIds: this.tokenize(ownText(end < 0 ? text : text.slice(0, end))),
      ended: end >= 0,
      continuesOpening,
    };
  }

  /**
   * The part of the generation prompt that belongs to the assistant's turn, for example `<think>` and a newline; often
   * empty. A message that records a sampled turn contains this text and then the sampled text.
   */
  renderOpening(after: "user" | "tool" = "user"): string {
    return this.base.renderOpening(after);
  }

  /**
   * The part of the generation prompt that the template no longer prints once others have followed the turn; often
   * empty.
   */
  renderDropped(after: "user" | "tool" = "user"): string {
    return this.base.renderDropped(after);
  }

  /** Tokens of a whole conversation in the template's rendering. */
  encodeWhole(
    messages: readonly ChatMessage[],
    tools: readonly ToolSchema[] = [],
    addGenerationPrompt = false,
    onUnsplit?: OnUnsplit,
  ): Int32Array {
    return this.addBos(this.tokenize(this.renderMarked(messages, tools, addGenerationPrompt, onUnsplit)));
  }

  /** Adds the BOS token in front of a whole prompt if it is needed and missing. */
  addBos(ids: Int32Array): Int32Array {
    if (this.bosToken === null || ids[0] === this.bosToken) return ids;
    return Int32Array.from([this.bosToken, ...ids]);
  }

  /** Texts of the tokens that end a turn. */
  listEndTexts(): readonly string[] {
    return this.turnEnds.listTexts();
  }

  /** The same, and texts that the template has been seen to print instead of them once the conversation continues. */
  listPrintedEndTexts(): string[] {
    return this.turnEnds.listPrintedTexts();
  }
}

function noProjector(): ConfigError {
  return new ConfigError("has an image, and the model has no projector", {
    code: "config/no-projector",
    subject: "message",
    expected: "only text, or a model with a projector for its images",
    remedy: "name the projector's file (model.mmproj in a config, `mmproj` of loadModel)",
  });
}

function noSuchTurn(): TokenizerError {
  return new TokenizerError("has an image, which no model can sample", {
    code: "tokenizer/sampled-image",
    subject: "message of the assistant",
    expected: "text and calls",
    remedy: "move the image to a message of the user or of a tool",
  });
}

/** The end of the last occurrence of any of `parts`; -1 when there is none. */
function findLast(text: string, parts: readonly string[]): number {
  let end = -1;
  for (const part of parts) {
    const at = text.lastIndexOf(part);
    if (at >= 0) end = Math.max(end, at + part.length);
  }
  return end;
}
