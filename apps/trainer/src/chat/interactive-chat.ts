import {
  type ChatMessage,
  contentText,
  DataError,
  hashSeed,
  type PolicyEngine,
  type PolicySequence,
  type ToolSchema,
} from "@cria/core";
import { pickSampling, showContent } from "@cria/core/internal";
import { Conversation, type ReadTurn, readTurn, type TurnEnd } from "@cria/episodes";
import { findOpening } from "@cria/episodes/internal";
import type { DatasetRow, MultiTurnOptions, SamplingParams } from "@cria/rollout";
import { type AnsweredCall, CallAnswers, EpisodeTools, parseRow } from "@cria/rollout/internal";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { BaseTool, ParsedToolCall } from "@cria/tools";
import { resolveToolFormat } from "@cria/tools/internal";
import { ChatImages } from "./chat-images.js";

export interface ChatOptions {
  engine: Pick<PolicyEngine, "info" | "images" | "detokenize" | "createSequence">;
  tokenizer: DeltaTokenizer;
  tools: ReadonlyMap<string, BaseTool>;
  multiTurn: MultiTurnOptions;
  /**
   * Sampling of the conversation. Each turn's seed derives from its seed as in a rollout, so that the same seed gives
   * the same conversation.
   */
  sampling: SamplingParams;
  /** null: the conversation has no system message. */
  system: string | null;
}

/** Callbacks of a turn in progress. */
export interface ChatListener {
  /** Text of the assistant as it is sampled, after the part that the prompt opens for it. Untrusted. */
  onText?: (text: string) => void;
  /** A call and its answer. Both are untrusted. */
  onCall?: (call: ChatCall) => void;
}

export interface ChatCall {
  name: string;
  arguments: Record<string, unknown>;
  result: string;
  /** Kind of the error that the model reads instead of an answer: unknown_tool, timeout, ... */
  failure?: string;
}

/** The assistant's turns after a user's message. */
export interface ChatTurn {
  /** The user's text, with images described in words. */
  user: string;
  /** The last assistant message, without calls that were run. */
  answer: string;
  calls: ChatCall[];
  /**
   * stop: the assistant has finished. length: its answer reached max tokens. context: no room is left. turns: it went
   * on calling tools. aborted: it was stopped.
   */
  finishReason: "stop" | "length" | "context" | "turns" | "aborted";
  /** The messages after the user's, as they are in the conversation. */
  messages: ChatMessage[];
  tokens: { prefilled: number; reused: number; sampled: number };
  /** Seconds of sampling, without tools. */
  seconds: number;
}

/** Most rounds of tool calls after one message, unless the config sets it. */
const MOST_ROUNDS = 16;

/** The state before a turn. */
interface Mark {
  user: ChatMessage["content"];
  /** Null: it is the first turn. */
  place: Conversation["place"] | null;
  samplings: number;
  unheard: ChatMessage[];
}

/**
 * A conversation between a user and a model that calls tools: an episode whose user is a person. Earlier messages stay
 * in the KV cache; sampled tokens are never tokenized again. It reads turns and answers calls as rollouts do. It prints
 * nothing.
 */
export class InteractiveChat {
  private talk: Conversation | null = null;
  private sequence: PolicySequence | null = null;
  /** Holds the cache of a longer conversation until a new one has taken over its beginning. */
  private former: PolicySequence | null = null;
  private tools: { session: EpisodeTools; answers: CallAnswers } | null = null;
  private agentData: Record<string, unknown> = {};
  private marks: Mark[] = [];
  /** Number of samplings, each of which has another seed. */
  private samplings = 0;
  /** Number of retries of the current message. */
  private attempt = 0;
  /** Answers of tools that came when the turn was stopped; the model has not seen them yet. */
  private unheard: ChatMessage[] = [];
  private signal: AbortSignal | undefined;
  private onCall: ((answer: AnsweredCall) => void) | undefined;
  /** Images that wait for the next message, and those for tools. */
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

  /** Tokens in use, and the size of the context. */
  get context(): { used: number; size: number } {
    return { used: this.talk?.tokenCount ?? 0, size: this.options.engine.info.contextSize };
  }

  /** All messages so far, with the system message. */
  get conversation(): ChatMessage[] {
    return [...(this.talk?.messages ?? []), ...this.unheard];
  }

  /**
   * Adds the user's message with the attached images, and lets the assistant answer, calling tools as long as it likes.
   * An abort ends the turn and keeps the messages so far.
   * @throws DataError when the message does not fit; the conversation is then unchanged.
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
    const { samplings, unheard } = this;
    this.signal = signal;
    const delta = this.encodeUser(user);
    const mark: Mark = { user, place: this.talk?.place ?? null, samplings, unheard };
    this.marks.push(mark);
    try {
      this.hearUser(user, delta);
      if (!this.tools) {
        this.tools = this.openTools();
        await this.tools.session.create();
      }
      return await this.answer(user, delta, listener);
    } catch (error) {
      if (this.marks.at(-1) === mark) this.undo();
      throw error;
    }
  }

  /**
   * Takes back the last message and everything after it.
   * @returns the message; null when there is none.
   */
  undo(): ChatMessage["content"] | null {
    const mark = this.marks.pop();
    if (!mark) return null;
    if (mark.place) this.talk!.goBack(mark.place);
    else this.talk = null;
    this.samplings = mark.samplings;
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
    this.talk = null;
    this.marks = [];
    this.samplings = 0;
    this.attempt = 0;
    this.unheard = [];
    this.agentData = {};
    this.images.clear();
  }

  /** Releases tools and cache. */
  async close(): Promise<void> {
    this.signal = undefined;
    await this.tools?.session.release();
    this.tools = null;
    for (const sequence of [this.former, this.sequence]) sequence?.dispose();
    this.former = null;
    this.sequence = null;
  }

  private listUser(user: ChatMessage["content"]): ChatMessage[] {
    const { system } = this.options;
    const said: ChatMessage[] = [{ role: "user", content: user }];
    if (this.talk) return [...this.unheard, ...said];
    return system === null ? said : [{ role: "system", content: system }, ...said];
  }

  /**
   * The tokens that append the user's message.
   * @throws DataError when there is no room for them.
   */
  private encodeUser(user: ChatMessage["content"]): Int32Array {
    const { tokenizer } = this.options;
    const said = this.listUser(user);
    const delta = this.talk ? tokenizer.encodeDelta(said, this.talk.ended) : tokenizer.encodePrompt(said, this.schemas);
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
    return delta;
  }

  private hearUser(user: ChatMessage["content"], tokenIds: Int32Array): void {
    const messages = this.listUser(user);
    this.unheard = [];
    if (this.talk) {
      this.talk.hear(messages, tokenIds);
      return;
    }
    const { size } = this.context;
    this.talk = new Conversation({ messages, tools: this.schemas, tokenIds }, size - tokenIds.length);
  }

  private async answer(user: ChatMessage["content"], first: Int32Array, listener: ChatListener): Promise<ChatTurn> {
    const { multiTurn, tokenizer } = this.options;
    const talk = this.talk!;
    const turn: ChatTurn = {
      user: showContent(user),
      answer: "",
      calls: [],
      finishReason: "stop",
      messages: [],
      tokens: { prefilled: 0, reused: 0, sampled: 0 },
      seconds: 0,
    };
    let delta = first;
    for (let round = 1; ; round++) {
      const { calls, end, text } = await this.sample(delta, turn, listener);
      turn.messages.push({ role: "assistant", content: text });
      turn.answer = contentText(text);
      turn.finishReason = finishReasons[end];
      if (end === "aborted" || end === "length" || calls.length === 0) return turn;
      if (round >= (multiTurn.maxAssistantTurns ?? MOST_ROUNDS)) return { ...turn, finishReason: "turns" };
      const answers = await this.runCalls(calls, turn, listener);
      turn.messages.push(...answers);
      this.unheard = answers;
      if (this.signal?.aborted) return { ...turn, finishReason: "aborted" };
      delta = tokenizer.encodeDelta(answers, talk.ended);
      if (delta.length + 1 > talk.remaining) return { ...turn, finishReason: "context" };
      this.unheard = [];
      talk.hear(answers, delta);
    }
  }

  /** One turn of the assistant. */
  private async sample(delta: Int32Array, turn: ChatTurn, { onText }: ChatListener): Promise<ReadTurn> {
    const { engine, sampling, tokenizer, multiTurn } = this.options;
    const talk = this.talk!;
    const { remaining } = talk;
    const opening = findOpening(tokenizer, talk.messages.at(-1)?.role === "tool" ? "tool" : "user");
    if (opening !== "") onText?.(opening);
    const fed = this.sequence ? delta : talk.tokenIds;
    this.sequence ??= engine.createSequence();
    const draw = hashSeed(sampling.seed, this.samplings++);
    const started = performance.now();
    const result = await this.sequence.generate(fed, {
      maxTokens: Math.min(remaining, sampling.maxTokensPerTurn ?? Number.POSITIVE_INFINITY),
      ...pickSampling(sampling),
      ...(sampling.stop.length > 0 ? { stopStrings: sampling.stop } : {}),
      seed: this.attempt === 0 ? draw : hashSeed(draw, "attempt", this.attempt),
      signal: this.signal,
      onText,
    });
    this.former?.dispose();
    this.former = null;
    turn.seconds += (performance.now() - started) / 1000;
    turn.tokens.prefilled += result.stats.prefillTokens;
    turn.tokens.reused += result.stats.reusedTokens;
    turn.tokens.sampled += result.tokenIds.length;
    const { schemas } = this;
    const { maxTokensPerTurn } = sampling;
    const parse = schemas.length > 0 ? resolveToolFormat(multiTurn.format).parse : null;
    const read = readTurn(result, { engine, opening, parse, schemas, maxTokensPerTurn, remaining });
    talk.say(result, read);
    return read;
  }

  private async runCalls(calls: readonly ParsedToolCall[], turn: ChatTurn, { onCall }: ChatListener) {
    this.onCall = ({ call, message, failure }) => {
      const { name, arguments: args } = call;
      const seen: ChatCall = { name, arguments: args, result: showContent(message.content) };
      if (failure) seen.failure = failure;
      turn.calls.push(seen);
      onCall?.(seen);
    };
    const answers = await this.tools!.answers.answer(calls);
    return answers.map(({ message }) => message);
  }

  private openTools() {
    const { tools, multiTurn, engine, tokenizer } = this.options;
    const currentSignal = () => this.signal;
    const images = this.images.forTools(() => this.conversation);
    const addMetric = () => undefined;
    const session = new EpisodeTools({
      tools,
      ...(images ? { images } : {}),
      row: makeRow(),
      multiTurn,
      agentData: this.agentData,
      addMetric,
      // Each message has its own signal; the tools live as long as the conversation.
      get signal() {
        return currentSignal();
      },
    });
    const answers = new CallAnswers({
      tools,
      session,
      multiTurn,
      engine,
      tokenizer,
      imageAccess: {},
      addMetric,
      remaining: () => this.talk!.remaining,
      signal: currentSignal,
      onAnswer: (answer) => this.onCall?.(answer),
    });
    return { session, answers };
  }
}

const finishReasons: Record<TurnEnd, ChatTurn["finishReason"]> = {
  ended: "stop",
  stopped: "stop",
  cut: "length",
  length: "context",
  aborted: "aborted",
};

/** A dataset row for tools, which need one; a conversation with a user has none. */
function makeRow(): DatasetRow {
  return parseRow({ prompt: [{ role: "user", content: "" }], data_source: "chat" }, 0, "chat");
}
