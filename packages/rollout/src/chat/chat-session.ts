import { randomUUID } from "node:crypto";
import {
  type ChatMessage,
  DataError,
  EngineError,
  type GenerateOptions,
  type GenerateResult,
  hashSeed,
  type PolicyEngine,
  type SampledTokens,
  TokenizerError,
  type ToolSchema,
} from "@cria/core";
import { pickSampling } from "@cria/core/internal";
import {
  type AnswerNode,
  countTokens,
  findTurnForm,
  type InputNode,
  MessageGraph,
  now,
  type Place,
  type RecordedCall,
  readTurn,
  type Said,
  type TurnForm,
} from "@cria/episodes";
import {
  findOpening,
  formAnswer,
  hashValue,
  isAnswer,
  isUsableNumber,
  joinTokens,
  listPath,
  nameCalls,
  usableNumber,
} from "@cria/episodes/internal";
import { type DeltaTokenizer, type EncodedTurn, InferenceConversation } from "@cria/tokenizer-delta";
import type { GivenToolFormat, ToolFormat } from "@cria/tools";
import { resolveToolFormat } from "@cria/tools/internal";
import { copyData } from "../copy-data.js";
import { hideVectors } from "../images/find-images.js";
import type { ImageAccess } from "../images/load-content.js";
import { countImageTokens } from "../images/prepare-images.js";
import { describeData } from "../plain-data.js";
import { takeTurn } from "../take-turn.js";
import { traceChat } from "../tracing/trace-work.js";
import type { TraceScope } from "../tracing/tracer.js";
import type {
  ChatAnswer,
  ChatAnswerMessage,
  ChatEvent,
  ChatModel,
  ChatOptions,
  ChatRequest,
  ChatSampling,
} from "./chat-model.js";
import { checkRequest } from "./check-request.js";
import { countThoughts } from "./count-thoughts.js";
import { loadRequest, prepareRequest } from "./load-request.js";
import { describeGrammarError, makeGrammar } from "./make-grammar.js";
import { readAnswer } from "./read-answer.js";
import { isRoleRewards, type RoleRewards, theRoleRewards } from "./role-rewards.js";
import { RunningTurn } from "./running-turn.js";
import { TurnStream } from "./turn-stream.js";

export interface ChatLimits {
  /** Maximum number of tokens in one conversation, its answer included; default: the model's context. */
  context?: number;
  /** Maximum number of tokens in one answer; default: the rest of the context. */
  answer?: number;
  /** Maximum number of answers in the session; default: no limit. */
  calls?: number;
}

export interface ChatSessionOptions {
  engine: Pick<PolicyEngine, "tokenize" | "detokenize" | "info" | "createSequence" | "roles" | "images">;
  tokenizer: DeltaTokenizer;
  /** Name of the model, for clients. */
  name: string;
  /** Tool-call format of the policy: a format, its name, or a parser. */
  format: GivenToolFormat;
  /** Default: a new one. */
  id?: string;
  /** Seeds every random draw, together with an answer's place in the graph. */
  seed: number;
  /** Sampling parameters for requests that give none; default: temperature 1, all tokens. */
  sampling?: ChatSampling;
  /** True: `sampling` overrides the requests' own parameters, as in training. Default false. */
  enforceSampling?: boolean;
  limits?: ChatLimits;
  /**
   * Limits and permitted sources of images in requests, if the engine takes images; default: bytes and data
   * addresses, within the usual limits.
   */
  images?: ImageAccess;
  /**
   * True: each turn sees the conversation as the template renders it whole (`use_inference_chat_template`); if that
   * changes earlier text, the conversation continues in a branch. Default false: earlier text stays as it was.
   */
  production?: boolean;
  /** Stop strings added to those of every request. */
  stop?: readonly string[];
  /** Returns the number of weight updates the policy has had; default 0. */
  policyVersion?: () => number;
  /** Called with warnings for the user. */
  onWarning?: (warning: string) => void;
  /** Tracing scope for the answers' spans; default: no tracing. */
  trace?: TraceScope;
  /** Aborts all calls. */
  signal?: AbortSignal;
}

/** Counters of a session, named as in `Trajectory.metrics`. */
export type ChatCounter =
  | "chat_calls"
  | "chat_roots"
  | "chat_branches"
  | "chat_siblings"
  | "chat_retries"
  | "chat_sampling_overridden"
  | "generate_s"
  | "prefill_tokens"
  | "reused_tokens"
  | "decode_tokens";

/**
 * The calls of one agent as a message graph. A continued conversation keeps its tokens: sampled text is never
 * tokenized again. Edited history opens a branch, unknown history a new root. A request equal to an earlier one
 * whose caller has given up gets that answer; equal to any other request, it gets a sibling answer. Sampling depends
 * on the session's seed and the answer's place in the graph, not on when the call arrives.
 */
export class ChatSession implements ChatModel {
  readonly id: string;
  readonly name: string;
  readonly graph = new MessageGraph();
  readonly metrics: Record<ChatCounter, number> = {
    chat_calls: 0,
    chat_roots: 0,
    chat_branches: 0,
    chat_siblings: 0,
    chat_retries: 0,
    chat_sampling_overridden: 0,
    generate_s: 0,
    prefill_tokens: 0,
    reused_tokens: 0,
    decode_tokens: 0,
  };
  /** Rewards of single answers; `node` is the answer's id. */
  readonly rewards: { node: string; value: number }[] = [];
  /** Reward of the whole episode, if given; the last one counts. */
  outcome: number | null = null;
  /** Rewards by role, if given; the last ones count. */
  roleRewards: RoleRewards | null = null;
  /** Error of the last call that was refused for lack of tokens or calls; null: none was. */
  refusal: DataError | null = null;
  private readonly running = new Map<AnswerNode, RunningTurn>();
  private readonly rendering = new Map<InputNode, Promise<InputNode>>();
  private readonly format: ToolFormat;
  private calls = 0;
  private heard = 0;
  private isDisposed = false;
  private hasToldOfLateCall = false;
  /** True once the agent has returned; see `leave`. */
  isLeft = false;
  /** Reason why further calls are refused; null: they are accepted. */
  private ending: { reason: unknown } | null = null;
  private readonly onAbort = () => this.abort(this.options.signal!.reason);

  /** Engine and tokenizer that generate the answers. */
  get model(): Pick<ChatSessionOptions, "engine" | "tokenizer"> {
    return this.options;
  }

  constructor(private readonly options: ChatSessionOptions) {
    this.id = options.id ?? randomUUID();
    this.name = options.name;
    this.format = resolveToolFormat(options.format);
    options.signal?.addEventListener("abort", this.onAbort, { once: true });
  }

  complete(request: ChatRequest, options: ChatOptions = {}): Promise<ChatAnswer> {
    const answer = this.ask(request, options).catch((error: unknown) => {
      if (!this.isLeft) throw error;
      if (!this.hasToldOfLateCall) this.options.onWarning?.(lateCall);
      this.hasToldOfLateCall = true;
      return new Promise<never>(() => {});
    });
    // A call that the agent never awaits is rejected when the session ends: mark it handled, else it would end the
    // process.
    answer.catch(() => undefined);
    return answer;
  }

  private async ask(request: ChatRequest, options: ChatOptions): Promise<ChatAnswer> {
    checkRequest(request);
    const { messages, tools = [], role } = request;
    this.checkOpen(options.signal);
    const { engine, images } = this.options;
    const loaded = await loadRequest(copyData([...messages]), engine.images, images);
    // Checked before thousands of images are given ids.
    const imageTokens = countImageTokens(
      loaded.map(({ content }) => content),
      engine.images,
    );
    if (imageTokens >= this.contextSize) throw this.refuseLength(imageTokens);
    // Many calls may arrive at once; each renders in its own iteration of the event loop.
    await takeTurn();
    this.checkOpen(options.signal);
    const input = await this.render(this.locate(loaded, tools, role));
    this.checkOpen(options.signal);
    const isWaitedFor = (answer: AnswerNode) => this.running.get(answer)?.isAborted === false;
    const { answer, sibling } = this.graph.claim(input, this.nameQuestion(request), isWaitedFor, options.separate);
    const running = this.running.get(answer);
    // The previous caller aborted this answer. Wait for it to stop, then generate it again.
    if (running?.isAborted && (await running.hasFailed())) return this.ask(request, options);
    if (answer.state !== "new") this.count("chat_retries", 1);
    const heard = await (running ?? this.start(answer, sibling, request)).join(options);
    this.settle(answer);
    return heard;
  }

  /**
   * Repeats a recorded call at its recorded place, without looking its messages up. Its answer counts as delivered.
   * @param parent the answer that it continues; null: it begins a conversation.
   */
  async repeat(
    parent: AnswerNode | null,
    { messages, tools, request, sibling, last }: RecordedCall,
  ): Promise<AnswerNode> {
    const asked: ChatRequest = { ...request, messages, tools };
    checkRequest(asked);
    this.checkOpen(undefined);
    const loaded = await loadRequest(copyData([...messages]), this.options.engine.images, this.options.images);
    this.checkOpen(undefined);
    const input = await this.render(this.graph.openBehind(parent, loaded, tools));
    this.checkOpen(undefined);
    const answer = this.graph.answerAt(input, this.nameQuestion(asked), sibling);
    if (answer.state === "new") await this.start(answer, sibling, asked).join();
    this.settle(answer);
    if (last) answer.order = Number.POSITIVE_INFINITY;
    return answer;
  }

  /** Marks an answer as delivered. Until then, an equal request gets this answer. */
  private settle(answer: AnswerNode): void {
    if (answer.state === "done") return;
    this.running.delete(answer);
    answer.state = "done";
    answer.order = this.heard++;
  }

  /**
   * Rewards the episode, one of its answers, or the roles that the model played in it.
   * @param value a number, or a number for each role (`ChatRequest.role`).
   * @param node id of the answer that `value` rewards. Without it, a number is the episode's score.
   * After the session has ended, the reward is ignored with a warning.
   * @throws DataError for an unusable number or role, or for a node that is not in the session.
   */
  reward(value: number | RoleRewards, node?: string): void {
    const isNumber = isUsableNumber(value);
    if (!isNumber && !isRoleRewards(value))
      throw refuseReward("value", typeof value === "object" ? theRoleRewards : usableNumber, describeData(value));
    if (this.isDisposed) {
      this.options.onWarning?.(lateReward);
      return;
    }
    if (!isNumber) {
      this.roleRewards = value;
      return;
    }
    if (node === undefined) {
      this.outcome = value;
      return;
    }
    if (!this.graph.hasAnswer(node))
      throw refuseReward("node", "the node of an answer of this session", describeData(node));
    this.rewards.push({ node, value });
  }

  /** Aborts all calls and refuses further ones. */
  abort(reason: unknown = new Error("the session is over")): void {
    this.ending ??= { reason };
    for (const turn of this.running.values()) turn.abort(reason);
  }

  /**
   * Closes the session of an agent that has returned. Calls that still run, or arrive later, have no caller;
   * libraries between agent and session wrap them in promises of their own, whose rejection would end the process.
   * Such calls therefore never settle; the first one causes a warning.
   */
  leave(): void {
    this.isLeft = true;
    this.dispose();
  }

  /** Frees the session's sequences in the engine and rejects running calls; the graph stays. */
  dispose(): void {
    this.isDisposed = true;
    // The signal lives as long as the run.
    this.options.signal?.removeEventListener("abort", this.onAbort);
    this.abort();
    const free = (input: InputNode): void => {
      for (const answer of [...input.answers.values()].flat()) {
        answer.sequence?.dispose();
        answer.sequence = null;
        for (const next of answer.inputs.values()) free(next);
      }
    };
    for (const root of this.graph.roots.values()) free(root);
  }

  private locate(messages: readonly ChatMessage[], tools: readonly ToolSchema[], role?: string): Place {
    const place = this.graph.locate(messages, tools, role);
    if (place.kind === "root") this.count("chat_roots", 1);
    if (place.kind === "branch") this.count("chat_branches", 1);
    return place;
  }

  /** Tokens that an input's messages add to the conversation (mask 0), rendered once. */
  private render({ input }: Place): Promise<InputNode> {
    if (input.tokenIds) return Promise.resolve(input);
    const known = this.rendering.get(input);
    if (known) return known;
    const rendered = this.encode(input).finally(() => this.rendering.delete(input));
    this.rendering.set(input, rendered);
    return rendered;
  }

  private async encode(input: InputNode): Promise<InputNode> {
    const { engine } = this.options;
    const { parent, messages } = input;
    try {
      const tokenIds = await this.tokenize(input);
      if (tokenIds === null) return await this.openBranch(input);
      // A conversation that is too long is refused before its images are decoded.
      if (countTokens({ ...input, tokenIds }) < this.contextSize) await prepareRequest(messages, engine.images);
      input.tokenIds = tokenIds;
      return input;
    } catch (cause) {
      this.graph.remove(input);
      if (!(cause instanceof TokenizerError)) throw cause;
      if (parent === null) throw refuseMessages(messages, cause);
      // The template can print these messages only within a whole conversation.
      return this.openBranch(input);
    }
  }

  /** Tokens that an input adds; null if the template, rendering the whole conversation, changes earlier tokens. */
  private async tokenize(input: InputNode): Promise<Int32Array | null> {
    const { tokenizer, production = false } = this.options;
    const { parent, messages, tools } = input;
    if (!parent) return tokenizer.encodePromptAside(messages, tools);
    if (!production) return tokenizer.encodeDeltaAside(nameCalls(messages, parent), parent.said!.ended);
    const form = this.findForm(input);
    const conversation = new InferenceConversation(tokenizer, tools);
    const said: ChatMessage[] = [];
    let turn: EncodedTurn | undefined;
    for (const node of listPath(input)) {
      if (isAnswer(node)) {
        conversation.addSampled(node.said!.tokenIds);
        said.push(formAnswer(node, form));
      } else {
        said.push(...nameCalls(node.messages, node.parent));
        turn = conversation.encodeTurn(said);
      }
    }
    return turn!.keep === countTokens(parent) ? turn!.tokenIds : null;
  }

  private findForm({ tools }: InputNode): TurnForm {
    return findTurnForm(this.options.tokenizer, { schemas: tools, production: true });
  }

  /** Continues an input's conversation from a new root that holds all of its messages. */
  private async openBranch(input: InputNode): Promise<InputNode> {
    this.graph.remove(input);
    const form = this.options.production ? this.findForm(input) : "structured";
    const path = listPath(input).flatMap((node) => (isAnswer(node) ? [formAnswer(node, form)] : node.messages));
    const root = listPath(input)[0] as InputNode;
    this.count("chat_branches", 1);
    const whole = await this.render(this.graph.openBehind(null, path, root.tools));
    this.graph.move(input, whole);
    return whole;
  }

  private get contextSize(): number {
    const { limits = {}, engine } = this.options;
    return Math.min(limits.context ?? Number.POSITIVE_INFINITY, engine.info.contextSize);
  }

  /** Key of a request's options apart from its messages; "" for the defaults. */
  private nameQuestion(request: ChatRequest): string {
    const { toolChoice = "auto", ...beside } = pickAsked(request);
    const sampling = this.options.enforceSampling ? undefined : request.sampling;
    const asked = { toolChoice, ...beside, sampling };
    return JSON.stringify(asked) === '{"toolChoice":"auto"}' ? "" : hashValue(asked);
  }

  private start(answer: AnswerNode, sibling: number, request: ChatRequest): RunningTurn {
    const { limits = {} } = this.options;
    if (this.calls >= (limits.calls ?? Number.POSITIVE_INFINITY)) throw this.refuse(makeTooManyCalls(limits.calls!));
    const room = this.measureRoom(answer.parent, request);
    this.calls++;
    this.count("chat_calls", 1);
    if (sibling > 0) this.count("chat_siblings", 1);
    const sampling = this.chooseSampling(request, answer, sibling);
    answer.state = "pending";
    answer.call = { sibling, request: copyData(dropUndefined(pickAsked(request))) };
    const turn = new RunningTurn(async (signal, emit) => {
      try {
        return await this.sample(answer, request, { ...sampling, maxTokens: room }, signal, emit);
      } catch (error) {
        answer.state = "cut";
        this.running.delete(answer);
        throw error;
      }
    });
    this.running.set(answer, turn);
    return turn;
  }

  /** Maximum number of tokens of an answer. @throws DataError when it is 0. */
  private measureRoom(input: InputNode, { maxTokens }: ChatRequest): number {
    const { limits = {} } = this.options;
    const context = this.contextSize;
    const used = countTokens(input);
    if (used < context)
      return Math.min(context - used, limits.answer ?? Number.POSITIVE_INFINITY, maxTokens ?? context);
    throw this.refuseLength(used);
  }

  private refuseLength(used: number): DataError {
    return this.refuse(
      new DataError("is too long", {
        code: "chat/context-length",
        subject: "messages",
        expected: `fewer than ${this.contextSize} tokens, so that one is left for the answer`,
        received: `${used} tokens`,
        remedy: "send fewer messages, or a summary of them",
      }),
    );
  }

  private refuse(error: DataError): DataError {
    this.refusal ??= error;
    return error;
  }

  private chooseSampling(request: ChatRequest, answer: AnswerNode, sibling: number) {
    const { sampling: own = {}, enforceSampling = false, seed, onWarning } = this.options;
    const wanted = request.sampling ?? {};
    const overridden = enforceSampling ? findOverridden(wanted, own) : [];
    if (overridden.length > 0) {
      this.count("chat_sampling_overridden", 1);
      onWarning?.(
        `a training samples as its config says: what the agent asks for is not taken\n  ${overridden.join(", ")}`,
      );
    }
    const { seed: chosen, ...chosenSampling } = enforceSampling ? own : { ...own, ...dropUndefined(wanted) };
    const place = [answer.parent.id, sibling, ...[request.choice, request.role].filter((part) => part !== undefined)];
    // A client's own seed decides alone: the same seed gives the same answer again.
    return {
      ...chosenSampling,
      seed:
        chosen === undefined
          ? hashSeed(seed, ...place)
          : hashSeed(chosen, request.choice ?? 0, ...(request.role === undefined ? [] : [request.role])),
    };
  }

  private async sample(
    answer: AnswerNode,
    request: ChatRequest,
    sampling: ChatSampling & { seed: number; maxTokens: number },
    signal: AbortSignal,
    emit: (event: ChatEvent) => void,
  ): Promise<ChatAnswer> {
    const { tokenizer, stop = [], policyVersion = () => 0 } = this.options;
    const { parent } = answer;
    const { tools = [] } = request;
    const version = policyVersion();
    const startedAt = now();
    const opening = this.findOpening(parent);
    const grammar = makeGrammar(request, { format: this.format, opening, template: tokenizer.template.source });
    const { sequence, delta } = this.openSequence(parent, request.role);
    const reader = tools.length > 0 ? this.format : this.format.withoutCalls;
    const stream = new TurnStream(reader, emit);
    stream.push(opening);
    const stopStrings = [...stop, ...(request.stop ?? [])];
    let turn: GenerateResult;
    try {
      const options: GenerateOptions = {
        ...sampling,
        ...(stopStrings.length > 0 ? { stopStrings } : {}),
        ...(grammar === null ? {} : { grammar }),
        ...(request.topLogprobs ? { topLogprobs: request.topLogprobs } : {}),
        signal,
        onText: (text) => stream.push(text),
      };
      turn = await traceChat(this.options.trace, this.options.engine.info.path, options, () =>
        sequence.generate(delta, options),
      );
      if (turn.finishReason === "aborted") throw signal.reason ?? this.options.signal?.reason ?? makeDisposed();
    } catch (error) {
      sequence.dispose();
      throw describeGrammarError(error) ?? error;
    }
    await takeTurn();
    this.count("generate_s", (now() - startedAt) / 1000);
    this.count("prefill_tokens", turn.stats.prefillTokens);
    this.count("reused_tokens", turn.stats.reusedTokens);
    this.count("decode_tokens", turn.stats.decodeTokens);
    // Nine letters or digits: an id form that every template accepts.
    const makeId = (index: number) => hashValue(this.options.seed, answer.id, index).slice(0, 9);
    const { message } = readAnswer(opening + turn.text, reader, tools, makeId);
    const reasoningTokens = countThoughts(this.options.engine, turn.tokenIds, opening, message.reasoning_content);
    const { engine } = this.options;
    // No turn limit applies, so no call is dropped as cut off.
    const limits = { maxTokensPerTurn: null, remaining: 0 };
    const { text, span } = readTurn(turn, { engine, opening, parse: reader.parse, schemas: tools, ...limits });
    const spent = { policyVersion: version, startedAt, reasoningTokens };
    const said = this.describeSaid(message, turn, { text, ...(span ? { calls: span } : {}), ...spent });
    if (this.isDisposed) sequence.dispose();
    else answer.sequence = sequence;
    answer.said = said;
    stream.end(message);
    return this.describe(answer, turn);
  }

  private findOpening({ messages }: InputNode): string {
    return findOpening(this.options.tokenizer, messages.at(-1)!.role === "tool" ? "tool" : "user");
  }

  /**
   * The sequence to sample the answer in: the previous answer's, unless another turn has taken that, or the role has
   * another adapter.
   */
  private openSequence(input: InputNode, role: string | undefined) {
    const { engine } = this.options;
    const { parent } = input;
    const sequence = parent?.sequence;
    if (sequence && (!engine.roles || parent.call?.request.role === role)) {
      parent.sequence = null;
      return { sequence, delta: input.tokenIds! };
    }
    return { sequence: engine.createSequence(role), delta: joinTokens(input) };
  }

  private describeSaid(
    message: ChatAnswerMessage,
    turn: GenerateResult,
    counted: Pick<Said, "text" | "calls" | "policyVersion" | "startedAt" | "reasoningTokens">,
  ): Said {
    return {
      message,
      finishReason: turn.finishReason === "length" ? "length" : message.tool_calls ? "tool_calls" : "stop",
      ...pickSampled(turn),
      ended: this.options.engine.info.endOfGenerationTokens.includes(turn.tokenIds.at(-1)!),
      ...counted,
      endedAt: now(),
    };
  }

  private describe({ id, parent, said }: AnswerNode, { stats }: GenerateResult): ChatAnswer {
    // The session's own answers have these types.
    const { message, finishReason, policyVersion } = said as Pick<
      ChatAnswer,
      "message" | "finishReason" | "policyVersion"
    >;
    const promptTokenIds = Int32Array.from(hideVectors(joinTokens(parent), this.options.engine.info.vocabSize));
    return {
      node: id,
      session: this.id,
      message,
      finishReason,
      promptTokenIds,
      ...pickSampled(said!),
      usage: {
        promptTokens: promptTokenIds.length,
        completionTokens: said!.tokenIds.length,
        reasoningTokens: said!.reasoningTokens ?? 0,
        reusedTokens: Math.max(0, promptTokenIds.length - stats.prefillTokens),
      },
      times: { queueMs: stats.queueMs, prefillMs: stats.prefillMs, decodeMs: stats.decodeMs },
      policyVersion,
    };
  }

  /** @param signal the call's signal. */
  private checkOpen(signal: AbortSignal | undefined): void {
    if (this.isDisposed) throw makeDisposed();
    this.options.signal?.throwIfAborted();
    if (this.ending) throw this.ending.reason;
    signal?.throwIfAborted();
  }

  private count(name: ChatCounter, value: number): void {
    this.metrics[name] += value;
  }
}

/** Picks the tokens of a turn or of an answer. */
function pickSampled({ tokenIds, logprobs, constrained, topLogprobs, stopString }: SampledTokens): SampledTokens {
  return {
    tokenIds,
    logprobs,
    ...(constrained ? { constrained } : {}),
    ...(topLogprobs ? { topLogprobs } : {}),
    ...(stopString === undefined ? {} : { stopString }),
  };
}

function findOverridden(wanted: ChatSampling, own: ChatSampling): string[] {
  const defaults: ChatSampling = { ...pickSampling({}), ...own };
  return Object.entries(wanted)
    .filter(([name, value]) => value !== undefined && value !== defaults[name as keyof ChatSampling])
    .map(([name, value]) => `${name} ${value} (here ${defaults[name as keyof ChatSampling] ?? "by the run's seed"})`);
}

/** Options of a request that are part of its key, apart from messages, tools and sampling. */
function pickAsked({ toolChoice, responseFormat, maxTokens, stop, choice, topLogprobs, role }: ChatRequest) {
  return { toolChoice, responseFormat, maxTokens, stop, choice, topLogprobs, role };
}

function dropUndefined<T extends object>(given: T): Partial<T> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function refuseMessages(messages: readonly ChatMessage[], cause: TokenizerError): DataError {
  return new DataError("cannot be rendered by the model's chat template", {
    code: "chat/bad-request",
    subject: "messages",
    expected: "messages in an order that the template knows",
    received: cause.received ?? `roles ${messages.map(({ role }) => role).join(", ")}`,
    cause,
  });
}

const lateReward =
  "a reward came after its session had ended, and does not count\n  wait for what decides it before the agent returns";

const lateCall =
  "a call was still running when its agent returned, or came after that: it gets no answer\n  wait for every call before the agent returns";

function refuseReward(subject: string, expected: string, received: string): DataError {
  return new DataError("is wrong", { code: "chat/bad-request", subject: `reward: ${subject}`, expected, received });
}

function makeTooManyCalls(limit: number): DataError {
  return new DataError("has had all its calls", {
    code: "chat/too-many-calls",
    subject: "session",
    expected: `at most ${limit} calls of the model`,
    received: "one more",
  });
}

function makeDisposed(): EngineError {
  return new EngineError("is over", {
    code: "engine/disposed",
    subject: "session",
    expected: "a session in use",
    received: "one that was ended",
  });
}
