import {
  type ChatMessage,
  contentText,
  DataError,
  hashSeed,
  type PolicyEngine,
  type PolicySequence,
  showContent,
  type ToolSchema,
} from "@cria/core";
import {
  type DatasetRow,
  type MultiTurnOptions,
  parseRow,
  type SamplingParams,
  type ToolOutcome,
  ToolSession,
  truncateText,
} from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { type BaseTool, type ParsedToolCall, resolveToolParser } from "@cria/tools";
import { ChatImages } from "./chat-images.js";

export interface ChatOptions {
  engine: Pick<PolicyEngine, "info" | "images" | "detokenize" | "createSequence">;
  tokenizer: DeltaTokenizer;
  tools: ReadonlyMap<string, BaseTool>;
  multiTurn: MultiTurnOptions;
  /** The conversation's; a turn's seed comes of it as in a rollout, so that the same seed gives the same conversation. */
  sampling: SamplingParams;
  /** null: the conversation has no system message. */
  system: string | null;
}

/** Told of a turn while it happens. */
export interface ChatListener {
  /** Text of the assistant as it is sampled, first what the prompt opens in its name. Untrusted. */
  onText?: (text: string) => void;
  /** A call has its answer. Untrusted, both. */
  onCall?: (call: ChatCall) => void;
}

export interface ChatCall {
  name: string;
  arguments: Record<string, unknown>;
  result: string;
  /** Why there is no answer but an error for the model to read: unknown_tool, timeout, ... */
  failure?: string;
}

/** What followed a user's message. */
export interface ChatTurn {
  /** What the person said; its images in words. */
  user: string;
  /** The last assistant message, without calls that were run. */
  answer: string;
  calls: ChatCall[];
  /**
   * stop: the assistant has finished. length: it may not say more (max tokens). context: no room is left. turns: it went on
   * calling tools. aborted: it was stopped.
   */
  finishReason: "stop" | "length" | "context" | "turns" | "aborted";
  /** As they stand in the conversation, after the user's. */
  messages: ChatMessage[];
  tokens: { prefilled: number; reused: number; sampled: number };
  /** Of sampling alone, tools aside. */
  seconds: number;
}

/** Rounds of tool calls after one message, where the config does not say. */
const MOST_ROUNDS = 16;

/** What a turn began from. */
interface Mark {
  user: ChatMessage["content"];
  tokens: number;
  messages: number;
  samplings: number;
  ended: boolean;
  unheard: ChatMessage[];
}

/**
 * A conversation between a person and a model that calls tools. What was said stays in the KV cache; what the model sampled is
 * never tokenized again, as in rollouts. It prints nothing.
 */
export class ChatSession {
  private messages: ChatMessage[] = [];
  /** Of the whole conversation, the last sampled one included. */
  private tokenIds: number[] = [];
  private sequence: PolicySequence | null = null;
  /** Holds the cache of a longer conversation until its beginning has been taken over. */
  private former: PolicySequence | null = null;
  private tools: ToolSession | null = null;
  private agentData: Record<string, unknown> = {};
  private marks: Mark[] = [];
  /** Samplings so far: each has a seed of its own. */
  private samplings = 0;
  /** Attempts at the present message, beside the first. */
  private attempt = 0;
  /** Whether the last assistant turn has its end-of-turn token. */
  private ended = true;
  /** In `messages`, but not shown to the model yet: answers of tools when the turn was stopped. */
  private unheard: ChatMessage[] = [];
  private signal: AbortSignal | undefined;
  /** Those that wait for the next message, and those that tools look at. */
  readonly images: ChatImages;

  constructor(private readonly options: ChatOptions) {
    this.images = new ChatImages(options.engine.images);
  }

  get system(): string | null {
    return this.options.system;
  }

  /** The same seed and messages give the same conversation. */
  get seed(): number {
    return this.options.sampling.seed;
  }

  get schemas(): ToolSchema[] {
    return [...this.options.tools.values()].map((tool) => tool.schema);
  }

  /** Tokens in use, and how many there may be. */
  get context(): { used: number; size: number } {
    return { used: this.tokenIds.length, size: this.options.engine.info.contextSize };
  }

  /** Everything said so far, the system message included. */
  get conversation(): ChatMessage[] {
    return [...this.messages];
  }

  /**
   * Adds the user's message, with the images that were attached, and has the assistant answer, calling tools as long as it likes. An
   * abort ends the turn and keeps what was said.
   * @throws DataError when the message does not fit; the conversation is then as it was.
   */
  async say(text: string, listener: ChatListener = {}, signal?: AbortSignal): Promise<ChatTurn> {
    this.attempt = 0;
    const turn = await this.take(this.images.complete(text), listener, signal);
    this.images.clear();
    return turn;
  }

  private async take(
    user: ChatMessage["content"],
    listener: ChatListener,
    signal: AbortSignal | undefined,
  ): Promise<ChatTurn> {
    const { tokenIds, samplings, ended, unheard } = this;
    const mark = { user, tokens: tokenIds.length, messages: this.messages.length, samplings, ended, unheard };
    this.signal = signal;
    try {
      const delta = this.encodeUser(user);
      this.marks.push(mark);
      if (!this.tools) {
        this.tools = this.openTools();
        await this.tools.create();
      }
      return await this.answer(user, delta, listener);
    } catch (error) {
      if (this.marks.at(-1) === mark) this.undo();
      this.messages.length = mark.messages;
      throw error;
    }
  }

  /** Takes back the last message and all that followed it. @returns the message; null when there is none. */
  undo(): ChatMessage["content"] | null {
    const mark = this.marks.pop();
    if (!mark) return null;
    this.tokenIds.length = mark.tokens;
    this.messages.length = mark.messages;
    this.samplings = mark.samplings;
    this.ended = mark.ended;
    this.unheard = mark.unheard;
    if (this.sequence) {
      this.former?.dispose();
      this.former = this.sequence;
      this.sequence = null;
    }
    return mark.user;
  }

  /** Another answer to the last message. @returns null when there is none. */
  async retry(listener: ChatListener = {}, signal?: AbortSignal): Promise<ChatTurn | null> {
    const user = this.undo();
    if (user === null) return null;
    this.attempt++;
    return this.take(user, listener, signal);
  }

  /** Starts the conversation again, with another system message if one is given. */
  async reset(system = this.options.system): Promise<void> {
    await this.close();
    this.options.system = system;
    this.messages = [];
    this.tokenIds = [];
    this.marks = [];
    this.samplings = 0;
    this.attempt = 0;
    this.ended = true;
    this.unheard = [];
    this.agentData = {};
    this.images.clear();
  }

  /** Releases tools and cache. */
  async close(): Promise<void> {
    this.signal = undefined;
    await this.tools?.release();
    this.tools = null;
    for (const sequence of [this.former, this.sequence]) sequence?.dispose();
    this.former = null;
    this.sequence = null;
  }

  /** The tokens by which the user's message goes on. @throws DataError when there is no room for them. */
  private encodeUser(user: ChatMessage["content"]): Int32Array {
    const { tokenizer, system } = this.options;
    const said: ChatMessage[] = [{ role: "user", content: user }];
    const isFirst = this.tokenIds.length === 0;
    if (isFirst && system !== null) said.unshift({ role: "system", content: system });
    const delta = isFirst
      ? tokenizer.encodePrompt(said, this.schemas)
      : tokenizer.encodeDelta([...this.unheard, ...said], this.ended);
    const { used, size } = this.context;
    if (used + delta.length + 1 > size) {
      throw new DataError("does not fit into the context", {
        code: "data/context-full",
        subject: "the message",
        expected: `at most ${Math.max(0, size - used - 1)} tokens: the conversation has ${used} of ${size}`,
        received: `${delta.length} tokens`,
        remedy: "take back with /undo, start again with /reset, or give more room with --context",
      });
    }
    this.messages.push(...said);
    this.unheard = [];
    return delta;
  }

  private async answer(user: ChatMessage["content"], first: Int32Array, listener: ChatListener): Promise<ChatTurn> {
    const { multiTurn } = this.options;
    const turn: ChatTurn = {
      user: showContent(user),
      answer: "",
      calls: [],
      finishReason: "stop",
      messages: [],
      tokens: { prefilled: 0, reused: 0, sampled: 0 },
      seconds: 0,
    };
    const add = (...messages: ChatMessage[]) => {
      turn.messages.push(...messages);
      this.messages.push(...messages);
    };
    let delta = first;
    for (let round = 1; ; round++) {
      const { calls, message, finishReason } = await this.sample(delta, turn, listener);
      add(message);
      turn.answer = contentText(message.content);
      turn.finishReason = finishReason;
      if (finishReason === "aborted" || calls.length === 0) return turn;
      if (round >= (multiTurn.maxAssistantTurns ?? MOST_ROUNDS)) return { ...turn, finishReason: "turns" };
      const answers = await this.runCalls(calls, turn, listener);
      add(...answers);
      if (this.signal?.aborted) {
        this.unheard = answers;
        return { ...turn, finishReason: "aborted" };
      }
      delta = this.options.tokenizer.encodeDelta(answers, this.ended);
      const { used, size } = this.context;
      if (used + delta.length + 1 > size) {
        this.unheard = answers;
        return { ...turn, finishReason: "context" };
      }
    }
  }

  /** One turn of the assistant. */
  private async sample(delta: Int32Array, turn: ChatTurn, { onText }: ChatListener) {
    const { engine, sampling, tokenizer, multiTurn } = this.options;
    const opening = renderOpening(tokenizer, this.messages.at(-1)?.role === "tool" ? "tool" : "user");
    if (opening !== "") onText?.(opening);
    const fed = this.sequence ? Array.from(delta) : [...this.tokenIds, ...delta];
    this.sequence ??= engine.createSequence();
    const { used, size } = this.context;
    const left = size - used - delta.length;
    const draw = hashSeed(sampling.seed, this.samplings++);
    const started = performance.now();
    const result = await this.sequence.generate(fed, {
      maxTokens: Math.min(left, sampling.maxTokensPerTurn ?? Number.POSITIVE_INFINITY),
      temperature: sampling.temperature,
      topP: sampling.topP,
      topK: sampling.topK,
      minP: sampling.minP,
      ...(sampling.stop.length > 0 ? { stopStrings: sampling.stop } : {}),
      seed: this.attempt === 0 ? draw : hashSeed(draw, "attempt", this.attempt),
      signal: this.signal,
      onText,
    });
    this.former?.dispose();
    this.former = null;
    this.tokenIds.push(...delta, ...result.tokenIds);
    turn.seconds += (performance.now() - started) / 1000;
    turn.tokens.prefilled += result.stats.prefillTokens;
    turn.tokens.reused += result.stats.reusedTokens;
    turn.tokens.sampled += result.tokenIds.length;
    this.ended = engine.info.endOfGenerationTokens.includes(result.tokenIds.at(-1) ?? -1);
    const isStopString = result.finishReason === "stop" && !this.ended;
    // A stop string stays in the conversation, as its tokens do.
    const text = opening + (isStopString ? engine.detokenize(result.tokenIds) : result.text);
    const parsed = this.schemas.length > 0 ? resolveToolParser(multiTurn.format)(text, this.schemas) : null;
    // The last call of a turn that was cut may be broken for that alone.
    const calls = parsed?.calls.filter((call, i, { length }) => this.ended || i < length - 1 || !call.error) ?? [];
    const isFull = result.finishReason === "length" && result.tokenIds.length >= left;
    const finishReason: ChatTurn["finishReason"] = isFull ? "context" : result.finishReason;
    const message: ChatMessage = { role: "assistant", content: text };
    return { calls: isFull ? [] : calls, message, finishReason };
  }

  private async runCalls(calls: readonly ParsedToolCall[], turn: ChatTurn, { onCall }: ChatListener) {
    const { multiTurn, engine, tokenizer } = this.options;
    const limits = {
      maxTokens: multiTurn.maxToolResponseLength,
      maxChars: multiTurn.maxToolResponseChars,
      side: multiTurn.toolResponseTruncateSide,
    };
    const codec = {
      tokenize: (text: string) => tokenizer.tokenizePlain(text),
      detokenize: (ids: ArrayLike<number>) => engine.detokenize(ids),
    };
    return Promise.all(
      calls.map(async (call, i): Promise<ChatMessage> => {
        const outcome = await this.runCall(call, i);
        const { text } = truncateText(outcome.text, limits, codec);
        const { name, arguments: args } = call;
        const isOwn = this.options.tools.get(name)?.origin === "own";
        const content = await this.images.showAnswer(outcome, text, name, isOwn);
        const seen: ChatCall = { name, arguments: args, result: showContent(content) };
        if (outcome.failure) seen.failure = outcome.failure;
        turn.calls.push(seen);
        onCall?.(seen);
        return { role: "tool", ...(name ? { name } : {}), content };
      }),
    );
  }

  private async runCall(call: ParsedToolCall, index: number): Promise<ToolOutcome> {
    const { maxParallelCalls } = this.options.multiTurn;
    if (index < maxParallelCalls) return this.tools!.call(call);
    const text = `error: only ${maxParallelCalls} calls at a time; this one was not run`;
    return { text, reward: 0, metrics: {} };
  }

  private openTools(): ToolSession {
    const { tools, multiTurn } = this.options;
    const currentSignal = () => this.signal;
    const images = this.images.forTools(() => this.messages);
    return new ToolSession({
      tools,
      ...(images ? { images } : {}),
      row: makeRow(),
      multiTurn,
      agentData: this.agentData,
      addMetric: () => undefined,
      // Each message has a signal of its own, the tools live as long as the conversation.
      get signal() {
        return currentSignal();
      },
    });
  }
}

/** Tools are made for a row of a dataset; a person's conversation has none. */
function makeRow(): DatasetRow {
  return parseRow({ prompt: [{ role: "user", content: "" }], data_source: "chat" }, 0, "chat");
}

/** What the generation prompt says in the assistant's name; some templates cannot tell. */
function renderOpening(tokenizer: DeltaTokenizer, after: "user" | "tool"): string {
  try {
    return tokenizer.renderOpening(after);
  } catch {
    return "";
  }
}
