import {
  type ChatMessage,
  type CriaError,
  contentText,
  DataError,
  type FinishReason,
  type GenerateOptions,
  type GenerateResult,
  hashSeed,
  type PolicySequence,
  type ToolSchema,
  toContent,
} from "@cria/core";
import { checkConversation, InferenceConversation } from "@cria/tokenizer-delta";
import { type ParsedToolCall, type ParsedTurn, resolveToolParser, type ToolParser } from "@cria/tools";
import type { DatasetRow } from "../data/dataset-row.js";
import { loadContent } from "../images/load-content.js";
import { makeToolImages } from "../images/make-tool-images.js";
import { countImageTokens, prepareImages } from "../images/prepare-images.js";
import { describeError } from "../run-with-deadline.js";
import { traceChat, traceTool } from "../tracing/trace-work.js";
import type { AgentLoop, AgentLoopContext, AgentLoopOutput, NextTurn, SamplingParams } from "./agent-loop.js";
import { findCallTokens } from "./find-call-tokens.js";
import { findOpening } from "./find-opening.js";
import { InteractionSession, selectInteraction } from "./interaction-session.js";
import { isBadImage, isFatal } from "./is-fatal.js";
import type { LoopMetric } from "./loop-counters.js";
import { ProductionView } from "./production-view.js";
import { createAgentLog, now } from "./state-log.js";
import { takeTurn } from "./take-turn.js";
import { failCall, type ToolOutcome } from "./tool-outcome.js";
import { withText } from "./tool-response.js";
import { listToolSchemas, ToolSession } from "./tool-session.js";
import { type EarnedReward, TrajectoryBuilder } from "./trajectory-builder.js";
import { exceedsTokens, type TextCodec, truncateText } from "./truncate-text.js";
import { findTurnForm, nameId, structureTurn, type TurnForm } from "./turn-form.js";

/**
 * How an assistant's turn ended: with its end-of-turn token; with a stop string, `stopped`; at `max_tokens_per_turn`, `cut`;
 * or where nothing can follow it, since the response's tokens are used up or the run was aborted.
 */
type TurnEnd = "ended" | "stopped" | "cut" | "length" | "aborted";

/**
 * The model speaks; its tool calls run and their answers follow; an answer without a call goes to the interaction, if
 * the row has one; and so on until nobody has anything to add, or turns or tokens have run out.
 */
export class ToolAgentLoop implements AgentLoop {
  private readonly log = createAgentLog();
  private readonly agentData: Record<string, unknown> = {};
  private readonly metrics: Record<string, number> = { tool_calls: 0, tool_errors: 0, generate_s: 0, tool_s: 0 };
  private readonly toolRewards: EarnedReward[] = [];
  private readonly turnScores: EarnedReward[] = [];
  private readonly builder: TrajectoryBuilder;
  private readonly plainText: TextCodec = {
    tokenize: (text) => this.context.tokenizer.tokenizePlain(text),
    detokenize: (ids) => this.context.engine.detokenize(ids),
  };
  private readonly countUnsplit = () => this.addMetric("tokenization_unsplit", 1);
  private readonly extraFields: Record<string, unknown> = {};
  private production: ProductionView | null = null;
  private sequence: PolicySequence;
  private interaction: InteractionSession | null = null;
  private assistantTurns = 0;
  private userTurns = 0;
  /** The record: assistant turns as the text that was sampled. */
  private messages: ChatMessage[] = [];
  /** The same conversation as the template is given it in production. */
  private rendered: ChatMessage[] = [];
  private form: TurnForm = "text";
  private schemas: ToolSchema[] = [];
  private readonly parse: ToolParser;

  constructor(private readonly context: AgentLoopContext) {
    this.parse = resolveToolParser(context.multiTurn.format);
    this.builder = new TrajectoryBuilder(context.promptIds, context.responseLength);
    this.sequence = context.sequence;
  }

  async run(sampling: SamplingParams, row: DatasetRow): Promise<AgentLoopOutput> {
    const { context, agentData } = this;
    const { multiTurn, signal } = context;
    const addMetric = (name: LoopMetric, value: number) => this.addMetric(name, value);
    const common = { row, multiTurn, agentData, addMetric, signal };
    const images = makeToolImages(row, context.engine.images, context.imageAccess);
    const tools = new ToolSession({ ...common, tools: context.tools, images });
    const interaction = selectInteraction(context.interactions, row);
    const show = (content: ChatMessage["content"]) =>
      this.show(content, `image of interaction "${interaction!.name}"`, true);
    this.interaction =
      interaction &&
      new InteractionSession({
        ...common,
        interaction,
        seed: sampling.seed,
        show: context.engine.images ? show : null,
      });
    this.messages = [...row.prompt];
    this.rendered = [...row.prompt];
    this.schemas = listToolSchemas(context.tools, row);
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
      finishReason = await this.converse(sampling, tools);
      if (isLive) scores = await this.collectScores(tools);
    } catch (cause) {
      if (!signal?.aborted) {
        if (isFatal(cause)) throw cause;
        error = describeError(cause);
        this.builder.clearMask();
      }
    } finally {
      this.production?.dispose();
      await Promise.all([tools.release(), this.interaction?.finalize()]);
    }
    this.log.enter("terminated");
    Object.assign(this.extraFields, this.interaction?.record);
    if (error === undefined) await this.checkTokens();
    return {
      ...this.builder.build(),
      turnScores: this.builder.place(this.turnScores),
      toolRewards: this.builder.place(this.toolRewards),
      ...scores,
      numTurns: this.assistantTurns + this.userTurns + 1,
      metrics: this.metrics,
      messages: this.messages,
      finishReason,
      extraFields: this.extraFields,
      transitions: this.log.transitions,
      error,
    };
  }

  /** What tools and interaction say of the whole conversation. One that cannot is missed only where nothing else judges. */
  private async collectScores(tools: ToolSession) {
    const errors: string[] = [];
    const ask = async (work: Promise<number | null> | undefined) => {
      try {
        return (await work) ?? null;
      } catch (error) {
        errors.push(describeError(error));
        return null;
      }
    };
    const toolScore = await ask(tools.score());
    const interactionScore = await ask(this.interaction?.calculateScore());
    return { toolScore, interactionScore, ...(errors.length > 0 ? { scoreError: errors.join("; ") } : {}) };
  }

  /** Without it turns only add to what was said: by default, and where a prompt that was cut begins like no rendering. */
  private openProduction(): ProductionView {
    const { tokenizer, engine } = this.context;
    const conversation = new InferenceConversation(tokenizer, this.schemas, this.countUnsplit);
    conversation.encodeTurn(this.rendered);
    return new ProductionView(conversation, () => engine.createSequence());
  }

  private async converse(sampling: SamplingParams, tools: ToolSession): Promise<FinishReason> {
    let delta: Int32Array = new Int32Array(0);
    for (;;) {
      if (this.context.signal?.aborted) return "aborted";
      if (this.builder.remaining <= 0) return "length";
      const { end, calls } = await this.generate(delta, sampling);
      if (end === "length" || end === "aborted") return end;
      const next = await this.follow(calls, () =>
        calls.length > 0 ? this.runCalls(calls, tools) : this.interact(end === "cut" ? "length" : "stop"),
      );
      if (typeof next === "string") return next;
      const observed = this.observe(next, end === "ended");
      if (observed === null) return "length";
      delta = observed;
    }
  }

  private follow(calls: readonly ParsedToolCall[], live: () => Promise<NextTurn>): Promise<NextTurn> {
    const { answers } = this.context;
    if (!answers) return live();
    const isAwaited = calls.length > 0 ? this.hasTurnsLeft() : (this.interaction?.isDue(this.assistantTurns) ?? false);
    const text = contentText(this.messages.at(-1)!.content);
    return answers.follow({ number: this.assistantTurns, text, calls, isAwaited }, live);
  }

  private async generate(
    delta: Int32Array,
    sampling: SamplingParams,
  ): Promise<{ end: TurnEnd; calls: ParsedToolCall[] }> {
    const { multiTurn, engine, tokenizer } = this.context;
    this.log.enter("generating");
    this.context.request.enter("running");
    const startedAt = now();
    const turn = await this.sample(delta, sampling);
    await takeTurn();
    this.metrics.generate_s! += (now() - startedAt) / 1000;
    this.addMetric("prefill_tokens", turn.stats.prefillTokens);
    this.addMetric("reused_tokens", turn.stats.reusedTokens);
    this.addMetric("decode_tokens", turn.stats.decodeTokens);
    const end = this.findEnd(turn, sampling);
    const after = this.messages.at(-1)?.role === "tool" ? "tool" : "user";
    const opening = findOpening(tokenizer, after);
    // A stop string stays in the conversation, as its tokens do.
    const text = opening + (end === "stopped" ? engine.detokenize(turn.tokenIds) : turn.text);
    const parsed = this.schemas.length > 0 || this.form === "structured" ? this.parse(text, this.schemas) : undefined;
    const calls = this.schemas.length > 0 ? pickCalls(parsed, end) : [];
    const span =
      parsed && calls.length > 0
        ? {
            count: calls.length,
            ...findCallTokens(text, parsed, turn.tokenIds, (ids) => engine.detokenize(ids), opening),
          }
        : undefined;
    this.builder.addSampled(turn, startedAt, span, multiTurn.trainOnToolCalls);
    if (end === "cut") this.addMetric("cut_turns", 1);
    this.production?.addSampled(turn.tokenIds);
    this.assistantTurns++;
    const message: ChatMessage = { role: "assistant", content: text };
    this.messages.push(message);
    this.rendered.push(this.form === "structured" ? structureTurn(parsed && { ...parsed, calls }, text) : message);
    return { end, calls };
  }

  /** The next turn. In production's view what comes before it is evaluated first, and kept for turns after it. */
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
      maxTokens: Math.min(this.builder.remaining, sampling.maxTokensPerTurn ?? Number.POSITIVE_INFINITY),
      temperature: sampling.temperature,
      topP: sampling.topP,
      topK: sampling.topK,
      minP: sampling.minP,
      ...(sampling.stop.length > 0 ? { stopStrings: sampling.stop } : {}),
      seed: hashSeed(sampling.seed, this.assistantTurns),
      signal,
    };
    const { trace, engine } = this.context;
    return traceChat(trace, engine.info.path, options, () => this.sequence.generate(rest, options));
  }

  private findEnd({ finishReason, tokenIds }: GenerateResult, { maxTokensPerTurn }: SamplingParams): TurnEnd {
    if (finishReason === "aborted") return "aborted";
    if (finishReason === "stop")
      return this.context.engine.info.endOfGenerationTokens.includes(tokenIds.at(-1)!) ? "ended" : "stopped";
    const isCut = tokenIds.length === maxTokensPerTurn && tokenIds.length < this.builder.remaining;
    return isCut ? "cut" : "length";
  }

  private async runCalls(calls: readonly ParsedToolCall[], tools: ToolSession): Promise<NextTurn> {
    const { request, signal } = this.context;
    if (!this.hasTurnsLeft()) return "tool_calls";
    this.log.enter("processing_tools");
    request.enter("tool_calling");
    const startedAt = now();
    const outcomes = await Promise.all(calls.map((call, i) => this.runCall(call, i, tools)));
    await takeTurn();
    this.metrics.tool_s! += (now() - startedAt) / 1000;
    if (signal?.aborted) return "aborted";
    const { turn } = this.builder;
    const messages = outcomes.map((outcome, i): ChatMessage => {
      if (i < this.context.multiTurn.maxParallelCalls) this.countOutcome(calls[i]!.name, outcome);
      if (outcome.reward !== 0) this.toolRewards.push({ value: outcome.reward, turn });
      const { name, id } = calls[i]!;
      return { role: "tool", ...(name ? { name } : {}), ...nameId(id, "tool_call_id"), content: outcome.content };
    });
    const failures = outcomes.map(({ failure }, i) =>
      i < this.context.multiTurn.maxParallelCalls ? (failure ?? null) : "too_many_calls",
    );
    return { role: "tool", messages, startedAt, failures };
  }

  private async runCall(call: ParsedToolCall, index: number, tools: ToolSession): Promise<ShownOutcome> {
    const { multiTurn } = this.context;
    this.addMetric("tool_calls", 1);
    if (index >= multiTurn.maxParallelCalls) {
      this.addMetric("too_many_calls", 1);
      const text = `error: only ${multiTurn.maxParallelCalls} calls at a time; this one was not run`;
      return { text, content: text, reward: 0, metrics: {} };
    }
    const startedAt = now();
    const outcome = await traceTool(this.context.trace, call, () => tools.call(call));
    if (this.context.tools.has(call.name)) this.addMetric(`tool_s/${call.name}`, (now() - startedAt) / 1000);
    // At once, before other conversations have their turns: hundreds of megabytes would wait in memory.
    const limits = {
      maxTokens: multiTurn.maxToolResponseLength,
      maxChars: multiTurn.maxToolResponseChars,
      side: multiTurn.toolResponseTruncateSide,
    };
    const { text, truncated } = truncateText(outcome.text, limits, this.plainText);
    if (truncated) this.addMetric("tool_truncated", 1);
    const { omitted, parts, ...rest } = outcome;
    if (omitted) this.addMetric("tool_media_omitted", omitted.count);
    const said = omitted ? [text, omitted.text].filter((line) => line !== "").join("\n") : text;
    // The whole text is let go of.
    const shown = { ...rest, text: said };
    if (!parts) return { ...shown, content: said };
    const content = said === outcome.text ? toContent(parts) : withText(parts, said);
    try {
      const isOwn = this.context.tools.get(call.name)?.origin === "own";
      return { ...shown, content: await this.show(content, `image of tool "${call.name}"`, isOwn) };
    } catch (error) {
      if (!isRefusedImage(error)) throw error;
      const failed = failCall("bad_image", `error: ${call.name} gave an image that cannot be seen (${error.message})`);
      return { ...failed, content: failed.text };
    }
  }

  /**
   * Brings the images of what others said into memory, and finds damaged ones before they are a part of the conversation. What
   * does not fit any more ends it, and is not decoded.
   * @param isTrusted whether paths and addresses are followed: a program of the user's gave them.
   */
  private async show(
    content: ChatMessage["content"],
    subject: string,
    isTrusted: boolean,
  ): Promise<ChatMessage["content"]> {
    const { engine, imageAccess, signal } = this.context;
    const { maxBytes, maxPixels, fetch } = imageAccess;
    const trusted = isTrusted ? { folder: process.cwd(), fetch } : {};
    const shown = await loadContent(content, { subject, maxBytes, maxPixels, ...trusted });
    if (countImageTokens([shown], engine.images) < this.builder.remaining)
      await prepareImages(shown, engine.images, signal);
    return shown;
  }

  private countOutcome(tool: string, { failure, hasBadReward, metrics }: ToolOutcome): void {
    if (failure) {
      this.addMetric("tool_errors", 1);
      this.addMetric(`tool_${failure}`, 1);
      // Not of a name that the model made up: there is no end to these.
      if (this.context.tools.has(tool)) this.addMetric(`tool_errors/${tool}`, 1);
      return;
    }
    if (hasBadReward) this.addMetric("tool_bad_reward", 1);
    this.addMetric(`tool_answers/${tool}`, 1);
    for (const [name, value] of Object.entries(metrics)) this.addMetric(`tool/${tool}/${name}`, value);
  }

  /** @param otherwise why the conversation ends where no interaction is due. */
  private async interact(otherwise: FinishReason): Promise<NextTurn> {
    const { interaction } = this;
    if (!interaction?.isDue(this.assistantTurns)) return otherwise;
    this.log.enter("interacting");
    this.context.request.enter("interacting");
    const startedAt = now();
    const reply = await interaction.respond(this.messages, this.assistantTurns);
    await takeTurn();
    this.addMetric("interaction_turns", 1);
    this.addMetric("interaction_s", (now() - startedAt) / 1000);
    if (reply.score !== 0) this.turnScores.push({ value: reply.score, turn: this.builder.turn });
    // The last answer is judged too, though nothing can be said about it any more.
    if (reply.shouldTerminate || !this.hasTurnsLeft()) return "stop";
    return { role: "user", messages: [{ role: "user", content: reply.content }], startedAt };
  }

  private hasTurnsLeft(): boolean {
    const { maxAssistantTurns, maxUserTurns } = this.context.multiTurn;
    return (
      (maxAssistantTurns === null || this.assistantTurns < maxAssistantTurns) &&
      (maxUserTurns === null || this.userTurns < maxUserTurns)
    );
  }

  /**
   * Adds what others said to the trajectory; null when it does not fit, with one token more to reply.
   * @param ended whether the turn before has its end-of-turn token; else that comes with what follows, mask 0.
   */
  private observe(turn: Exclude<NextTurn, string>, ended: boolean): Int32Array | null {
    const { messages } = turn;
    const { tokenizer } = this.context;
    const { remaining } = this.builder;
    // Without this a text of a megabyte would be tokenized, only to be left out.
    if (messages.some((message) => exceedsTokens(contentText(message.content), remaining, this.plainText))) return null;
    const contents = messages.map(({ content }) => content);
    if (countImageTokens(contents, this.context.engine.images) >= remaining) return null;
    if (!this.production) {
      const delta = tokenizer.encodeDelta(messages, ended, this.countUnsplit);
      if (delta.length + 1 > remaining) return null;
      this.accept(turn, delta);
      return delta;
    }
    const before = this.builder.tokenIds.length;
    const next = this.production.advance(this.sequence, [...this.rendered, ...messages]);
    this.sequence = next.sequence;
    if (next.observed.length + 1 > remaining + before - next.keep) return null;
    if (next.keep < before) {
      this.addMetric("rewritten_turns", 1);
      this.addMetric("rewritten_tokens", this.builder.cutFrom(next.keep));
    }
    this.accept(turn, next.observed);
    return next.delta;
  }

  private accept(turn: Exclude<NextTurn, string>, delta: Int32Array): void {
    const { role, messages, startedAt, failures } = turn;
    this.builder.addObserved(role, delta, startedAt, failures);
    this.messages.push(...messages);
    this.rendered.push(...messages);
    this.userTurns++;
  }

  private async checkTokens(): Promise<void> {
    const mode = this.context.multiTurn.tokenizationSanityCheckMode;
    if (mode === "disable") return;
    if (!this.context.promptIsWhole) return this.addMetric("tokenization_unchecked", 1);
    await takeTurn();
    const { tokenIds, sampledMask: mask } = this.builder;
    const { rendered: messages, schemas: tools } = this;
    const check = checkConversation(this.context.tokenizer, { messages, tools, tokenIds, mask, mode });
    if (check.kind === "equal") return;
    this.addMetric(`tokenization_${check.kind}`, 1);
    this.extraFields.tokenization = check;
  }

  private addMetric(name: LoopMetric, value: number): void {
    this.metrics[name] = (this.metrics[name] ?? 0) + value;
  }
}

/** An answer as the policy is shown it. */
interface ShownOutcome extends ToolOutcome {
  content: ChatMessage["content"];
}

/** Whether an image that a tool gave cannot be shown. */
function isRefusedImage(error: unknown): error is CriaError {
  return isBadImage(error) || (error instanceof DataError && error.code === "data/image-refused");
}

/** Calls to answer. The last one of a turn that was cut may be broken for that alone, and is then none. */
function pickCalls(parsed: ParsedTurn | undefined, end: TurnEnd): ParsedToolCall[] {
  const calls = parsed?.calls ?? [];
  return end === "cut" && calls.at(-1)?.error !== undefined ? calls.slice(0, -1) : calls;
}
