import {
  type ChatMessage,
  contentText,
  type FinishReason,
  type GenerateOptions,
  type GenerateResult,
  hashSeed,
  type PolicySequence,
  type ToolSchema,
} from "@cria/core";
import { pickSampling } from "@cria/core/internal";
import {
  type AnswerNode,
  Conversation,
  type EarnedReward,
  findTurnForm,
  type LaidOutGraph,
  now,
  placeRewards,
  readTurn,
  type TurnEnd,
  type TurnForm,
} from "@cria/episodes";
import { findOpening } from "@cria/episodes/internal";
import { checkConversation, InferenceConversation } from "@cria/tokenizer-delta";
import type { ParsedToolCall, ToolParser } from "@cria/tools";
import { resolveToolFormat } from "@cria/tools/internal";
import type { DatasetRow } from "../data/dataset-row.js";
import { listToolSchemas } from "../data/select-tools.js";
import { countImageTokens } from "../images/prepare-images.js";
import { isFatal } from "../is-fatal.js";
import { describeError } from "../run-with-deadline.js";
import { takeTurn } from "../take-turn.js";
import { traceChat } from "../tracing/trace-work.js";
import {
  type AgentLoop,
  type AgentLoopContext,
  type AgentLoopOutput,
  type NextTurn,
  type SamplingParams,
  seedOfTurn,
} from "./agent-loop.js";
import { CallAnswers, makePlainCodec } from "./answer-calls.js";
import { askThrough, digestQuestion, type JournalQuestion } from "./answer-journal.js";
import { EpisodeInteraction, selectInteraction } from "./episode-interaction.js";
import { EpisodeTools } from "./episode-tools.js";
import type { LoopMetric } from "./loop-counters.js";
import { makeToolImages } from "./make-tool-images.js";
import { ProductionView } from "./production-view.js";
import { createAgentLog } from "./state-log.js";
import { exceedsTokens } from "./truncate-text.js";

/**
 * Agent loop with tools: the model speaks; its tool calls run and their answers are appended; an answer without a
 * call goes to the interaction, if the row has one. This repeats until nobody replies, or turns or tokens run out.
 */
export class ToolAgentLoop implements AgentLoop {
  private readonly log = createAgentLog();
  private readonly agentData: Record<string, unknown> = {};
  private readonly metrics: Record<string, number> = { tool_calls: 0, tool_errors: 0, generate_s: 0, tool_s: 0 };
  private readonly toolRewards: EarnedReward[] = [];
  private readonly turnScores: EarnedReward[] = [];
  private readonly countUnsplit = () => this.addMetric("tokenization_unsplit", 1);
  private readonly extraFields: Record<string, unknown> = {};
  private production: ProductionView | null = null;
  private sequence: PolicySequence;
  private conversation!: Conversation;
  private answers!: CallAnswers;
  private tools!: EpisodeTools;
  /** The assistant's last turn. */
  private answer: AnswerNode | null = null;
  private interaction: EpisodeInteraction | null = null;
  private assistantTurns = 0;
  private userTurns = 0;
  private form: TurnForm = "text";
  private schemas: ToolSchema[] = [];
  private readonly parse: ToolParser;

  constructor(private readonly context: AgentLoopContext) {
    this.parse = resolveToolFormat(context.multiTurn.format).parse;
    this.sequence = context.sequence;
  }

  async run(sampling: SamplingParams, row: DatasetRow): Promise<AgentLoopOutput> {
    const { context, agentData } = this;
    const { multiTurn, signal } = context;
    const addMetric = (name: LoopMetric, value: number) => this.addMetric(name, value);
    const common = { row, multiTurn, agentData, addMetric, signal };
    const images = makeToolImages(row, context.engine.images, context.imageAccess);
    const tools = new EpisodeTools({ ...common, tools: context.tools, images });
    this.tools = tools;
    const interaction = selectInteraction(context.interactions, row);
    const show = (content: ChatMessage["content"]) =>
      this.answers.show(content, `image of interaction "${interaction!.name}"`, true);
    this.interaction =
      interaction &&
      new EpisodeInteraction({
        ...common,
        interaction,
        seedOf: (turn) => seedOfTurn(sampling, turn - 1),
        show: context.engine.images ? show : null,
        record: (messages, turn, ask) =>
          askThrough(
            context.journal,
            () => this.ask("reply", interaction.name, messages, turn, interaction.keepsState),
            ask,
          ),
      });
    this.schemas = listToolSchemas(context.tools, row);
    this.conversation = new Conversation(
      { messages: row.prompt, tools: this.schemas, tokenIds: context.promptIds },
      context.responseLength,
      { trainOnConstrained: true, trainOnToolCalls: multiTurn.trainOnToolCalls },
    );
    this.answers = new CallAnswers({
      tools: context.tools,
      session: tools,
      multiTurn,
      engine: context.engine,
      tokenizer: context.tokenizer,
      imageAccess: context.imageAccess,
      addMetric,
      remaining: () => this.conversation.remaining,
      signal: () => signal,
      ...(context.journal
        ? { record: (call, index, ask) => askThrough(context.journal, () => this.askForCall(call, index), ask) }
        : {}),
      ...(context.trace ? { trace: context.trace } : {}),
    });
    const production = multiTurn.useInferenceChatTemplate && context.promptIsWhole;
    if (this.schemas.length > 0 || interaction)
      this.form = findTurnForm(context.tokenizer, { schemas: this.schemas, production });
    if (production) this.production = this.openProduction();
    let finishReason: FinishReason = "aborted";
    let scores: Pick<AgentLoopOutput, "toolScore" | "interactionScore" | "scoreError"> = { toolScore: null };
    let error: string | undefined;
    try {
      const isLive = context.answers?.isLive ?? true;
      if (isLive) await Promise.all([tools.create(), this.interaction?.start()]);
      finishReason = await this.converse(sampling);
      if (isLive) scores = await this.collectScores(tools, interaction?.name ?? "");
    } catch (cause) {
      if (!signal?.aborted) {
        if (isFatal(cause)) throw cause;
        error = describeError(cause);
      }
    } finally {
      this.production?.dispose();
      await Promise.all([tools.release(), this.interaction?.finalize()]);
    }
    this.log.enter("terminated");
    Object.assign(this.extraFields, this.interaction?.record);
    const laidOut = this.conversation.layOut();
    const { tokenIds, promptLength, responseMask, rolloutLogprobs, turns, messages } = laidOut;
    if (error === undefined) await this.checkTokens(laidOut);
    return {
      tokenIds,
      promptLength,
      responseMask,
      rolloutLogprobs,
      turns,
      // A failed conversation is not trained on, so it has no rewards.
      turnScores: error === undefined ? placeRewards(this.turnScores, laidOut) : [],
      toolRewards: error === undefined ? placeRewards(this.toolRewards, laidOut) : [],
      ...scores,
      numTurns: this.assistantTurns + this.userTurns + 1,
      metrics: this.metrics,
      messages,
      finishReason,
      extraFields: this.extraFields,
      transitions: this.log.transitions,
      error,
    };
  }

  /** Scores of the whole conversation by tools and interaction. Errors matter only if nothing else judges. */
  private async collectScores(tools: EpisodeTools, interaction: string) {
    const errors: string[] = [];
    const ask = async (work: Promise<number | null> | undefined) => {
      try {
        return (await work) ?? null;
      } catch (error) {
        // The journal cannot be written.
        if (isFatal(error)) throw error;
        errors.push(describeError(error));
        return null;
      }
    };
    const { journal } = this.context;
    const { messages } = this.conversation;
    const of = (kind: JournalQuestion["kind"], name: string) => () =>
      this.ask(kind, name, messages, this.assistantTurns);
    const toolScore = await ask(
      tools.hasScore ? askThrough(journal, of("tool_score", ""), () => tools.score()) : undefined,
    );
    const score = () => this.interaction!.calculateScore();
    const interactionScore = await ask(
      this.interaction ? askThrough(journal, of("interaction_score", interaction), score) : undefined,
    );
    return { toolScore, interactionScore, ...(errors.length > 0 ? { scoreError: errors.join("; ") } : {}) };
  }

  /**
   * Opens the view for `use_inference_chat_template`. Without it, turns are only appended: the default, and the only
   * choice if a truncated prompt begins like no rendering.
   */
  private openProduction(): ProductionView {
    const { tokenizer, engine } = this.context;
    const conversation = new InferenceConversation(tokenizer, this.schemas, this.countUnsplit);
    conversation.encodeTurn(this.conversation.messages);
    return new ProductionView(conversation, () => engine.createSequence());
  }

  private async converse(sampling: SamplingParams): Promise<FinishReason> {
    let delta: Int32Array = new Int32Array(0);
    for (;;) {
      if (this.context.signal?.aborted) return "aborted";
      if (this.conversation.remaining <= 0) return "length";
      const { end, calls } = await this.generate(delta, sampling);
      if (end === "length" || end === "aborted") return end;
      const next = await this.follow(calls, () =>
        calls.length > 0 ? this.runCalls(calls) : this.interact(end === "cut" ? "length" : "stop"),
      );
      if (typeof next === "string") return next;
      const observed = this.observe(next, end === "ended");
      if (observed === null) return "length";
      await this.context.branch?.reach(this.assistantTurns, this.conversation.tokenCount, this.tools);
      delta = observed;
    }
  }

  private follow(calls: readonly ParsedToolCall[], live: () => Promise<NextTurn>): Promise<NextTurn> {
    const { answers } = this.context;
    if (!answers) return live();
    const isAwaited = calls.length > 0 ? this.hasTurnsLeft() : (this.interaction?.isDue(this.assistantTurns) ?? false);
    const text = contentText(this.conversation.messages.at(-1)!.content);
    return answers.follow({ number: this.assistantTurns, text, calls, isAwaited }, live);
  }

  private async generate(
    delta: Int32Array,
    sampling: SamplingParams,
  ): Promise<{ end: TurnEnd; calls: ParsedToolCall[] }> {
    const { engine, tokenizer } = this.context;
    this.log.enter("generating");
    this.context.request.enter("running");
    const startedAt = now();
    const turn = await this.sample(delta, sampling);
    await takeTurn();
    this.metrics.generate_s! += (now() - startedAt) / 1000;
    this.addMetric("prefill_tokens", turn.stats.prefillTokens);
    this.addMetric("reused_tokens", turn.stats.reusedTokens);
    this.addMetric("decode_tokens", turn.stats.decodeTokens);
    const after = this.conversation.messages.at(-1)?.role === "tool" ? "tool" : "user";
    const read = readTurn(turn, {
      engine,
      opening: findOpening(tokenizer, after),
      parse: this.schemas.length > 0 || this.form === "structured" ? this.parse : null,
      schemas: this.schemas,
      maxTokensPerTurn: sampling.maxTokensPerTurn,
      remaining: this.conversation.remaining,
    });
    const { end, calls } = read;
    if (end === "cut") this.addMetric("cut_turns", 1);
    this.answer = this.conversation.say(turn, read, { startedAt, endedAt: now() }, this.form);
    this.production?.addSampled(turn.tokenIds);
    this.assistantTurns++;
    return { end, calls };
  }

  /**
   * Samples the next turn. With a production view, the tokens before it are evaluated first and saved for later
   * turns.
   */
  private async sample(delta: Int32Array, sampling: SamplingParams): Promise<GenerateResult> {
    const { signal } = this.context;
    let rest = delta;
    if (this.production) {
      if (delta.length > 0) {
        await this.sequence.prefill(delta, { signal });
        this.addMetric("prefill_tokens", delta.length);
      }
      this.production.remember(this.sequence);
      rest = new Int32Array(0);
    }
    const options: GenerateOptions = {
      maxTokens: Math.min(this.conversation.remaining, sampling.maxTokensPerTurn ?? Number.POSITIVE_INFINITY),
      ...pickSampling(sampling),
      ...(sampling.stop.length > 0 ? { stopStrings: sampling.stop } : {}),
      seed: hashSeed(seedOfTurn(sampling, this.assistantTurns), this.assistantTurns),
      signal,
    };
    const { trace, engine } = this.context;
    return traceChat(trace, engine.info.path, options, () => this.sequence.generate(rest, options));
  }

  private async runCalls(calls: readonly ParsedToolCall[]): Promise<NextTurn> {
    const { request, signal } = this.context;
    if (!this.hasTurnsLeft()) return "tool_calls";
    this.log.enter("processing_tools");
    request.enter("tool_calling");
    const startedAt = now();
    const answers = await this.answers.answer(calls);
    await takeTurn();
    this.metrics.tool_s! += (now() - startedAt) / 1000;
    if (signal?.aborted) return "aborted";
    for (const { reward } of answers) if (reward !== 0) this.toolRewards.push({ value: reward, answer: this.answer! });
    const messages = answers.map(({ message }) => message);
    const state = answers.findLast((answer) => answer.state !== undefined)?.state;
    return {
      ...{ role: "tool", messages, startedAt, failures: answers.map(({ failure }) => failure ?? null) },
      ...(state === undefined ? {} : { state }),
    };
  }

  /** @param otherwise reason for ending if no interaction replies. */
  private async interact(otherwise: FinishReason): Promise<NextTurn> {
    const { interaction } = this;
    if (!interaction?.isDue(this.assistantTurns)) return otherwise;
    this.log.enter("interacting");
    this.context.request.enter("interacting");
    const startedAt = now();
    const reply = await interaction.respond(this.conversation.messages, this.assistantTurns);
    await takeTurn();
    this.addMetric("interaction_turns", 1);
    this.addMetric("interaction_s", (now() - startedAt) / 1000);
    if (reply.score !== 0) this.turnScores.push({ value: reply.score, answer: this.answer! });
    // The last answer is judged too, although it gets no reply.
    if (reply.shouldTerminate || !this.hasTurnsLeft()) return "stop";
    return { role: "user", messages: [{ role: "user", content: reply.content }], startedAt };
  }

  private askForCall({ name, arguments: given }: ParsedToolCall, call: number): JournalQuestion {
    const keepsState = this.context.tools.get(name)?.keepsState ?? false;
    const about = this.ask("tool", name, this.conversation.messages, this.assistantTurns, keepsState, given);
    return { ...about, call };
  }

  private ask(
    kind: JournalQuestion["kind"],
    name: string,
    messages: readonly ChatMessage[],
    turn: number,
    keepsState = false,
    ...about: readonly unknown[]
  ): JournalQuestion {
    const { signal } = this.context;
    return { kind, name, turn, call: 0, asked: digestQuestion(messages, name, ...about), keepsState, signal };
  }

  private hasTurnsLeft(): boolean {
    const { maxAssistantTurns, maxUserTurns } = this.context.multiTurn;
    return (
      (maxAssistantTurns === null || this.assistantTurns < maxAssistantTurns) &&
      (maxUserTurns === null || this.userTurns < maxUserTurns)
    );
  }

  /**
   * Appends a reply to the trajectory; null if it does not fit with at least one token left for an answer.
   * @param ended true if the turn before has its end-of-turn token; else that token is added with the reply, mask 0.
   */
  private observe(turn: Exclude<NextTurn, string>, ended: boolean): Int32Array | null {
    const { messages } = turn;
    const { tokenizer } = this.context;
    const { remaining, tokenCount } = this.conversation;
    const plainCodec = makePlainCodec(this.context);
    // Avoids tokenizing a megabyte of text only to drop it.
    if (messages.some((message) => exceedsTokens(contentText(message.content), remaining, plainCodec))) return null;
    const contents = messages.map(({ content }) => content);
    if (countImageTokens(contents, this.context.engine.images) >= remaining) return null;
    if (!this.production) {
      const delta = tokenizer.encodeDelta(messages, ended, this.countUnsplit);
      if (delta.length + 1 > remaining) return null;
      this.accept(turn, delta);
      return delta;
    }
    const next = this.production.advance(this.sequence, [...this.conversation.show(this.form), ...messages]);
    this.sequence = next.sequence;
    if (next.observed.length + 1 > remaining + tokenCount - next.keep) return null;
    if (next.keep < tokenCount) {
      this.addMetric("rewritten_turns", 1);
      this.addMetric("rewritten_tokens", this.conversation.cutFrom(next.keep));
    }
    this.accept(turn, next.observed);
    return next.delta;
  }

  private accept(turn: Exclude<NextTurn, string>, delta: Int32Array): void {
    const { messages, startedAt, failures, state } = turn;
    const heard = { startedAt, endedAt: now(), ...(failures ? { failures } : {}) };
    this.conversation.hear(messages, delta, { ...heard, ...(state === undefined ? {} : { state }) });
    this.userTurns++;
  }

  private async checkTokens({ tokenIds, turns }: LaidOutGraph): Promise<void> {
    const mode = this.context.multiTurn.tokenizationSanityCheckMode;
    if (mode === "disable") return;
    if (!this.context.promptIsWhole) return this.addMetric("tokenization_unchecked", 1);
    await takeTurn();
    const mask = new Uint8Array(tokenIds.length);
    for (const { role, start, end } of turns) if (role === "assistant") mask.fill(1, start, end);
    const messages = this.conversation.show(this.form);
    const { schemas: tools } = this;
    const check = checkConversation(this.context.tokenizer, { messages, tools, tokenIds, mask, mode });
    if (check.kind === "equal") return;
    this.addMetric(`tokenization_${check.kind}`, 1);
    this.extraFields.tokenization = check;
  }

  private addMetric(name: LoopMetric, value: number): void {
    this.metrics[name] = (this.metrics[name] ?? 0) + value;
  }
}
