import { type ChatMessage, type CriaError, DataError, type LoadImageOptions, type PolicyEngine } from "@cria/core";
import { toContent } from "@cria/core/internal";
import { nameId, now } from "@cria/episodes";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { BaseTool, ParsedToolCall } from "@cria/tools";
import { loadContent } from "../images/load-content.js";
import { countImageTokens, prepareImages } from "../images/prepare-images.js";
import { isBadImage } from "../is-fatal.js";
import { traceTool } from "../tracing/trace-work.js";
import type { TraceScope } from "../tracing/tracer.js";
import type { MultiTurnOptions } from "./agent-loop.js";
import type { EpisodeTools } from "./episode-tools.js";
import type { LoopMetric } from "./loop-counters.js";
import { failCall, type ToolOutcome } from "./tool-outcome.js";
import { withText } from "./tool-response.js";
import { type TextCodec, truncateText } from "./truncate-text.js";

/** A call, and what the policy is shown of its answer. */
export interface AnsweredCall {
  call: ParsedToolCall;
  message: ChatMessage;
  reward: number;
  /** The tool's name of the environment's state, where it gave one. */
  state?: string;
  /** Why there is no ordinary answer; undefined where there is one. */
  failure?: NonNullable<ToolOutcome["failure"]> | "too_many_calls";
}

export interface CallAnswersOptions {
  tools: ReadonlyMap<string, BaseTool>;
  session: EpisodeTools;
  multiTurn: Pick<
    MultiTurnOptions,
    "maxParallelCalls" | "maxToolResponseLength" | "maxToolResponseChars" | "toolResponseTruncateSide"
  >;
  engine: Pick<PolicyEngine, "images" | "detokenize">;
  tokenizer: Pick<DeltaTokenizer, "tokenizePlain">;
  imageAccess: Pick<LoadImageOptions, "maxBytes" | "maxPixels" | "fetch">;
  addMetric: (name: LoopMetric, value: number) => void;
  /** Tokens that are left: images that do not fit into them are not decoded. */
  remaining: () => number;
  signal: () => AbortSignal | undefined;
  trace?: TraceScope;
  /** Called as soon as a call has its answer. */
  onAnswer?: (answer: AnsweredCall) => void;
}

/** Answers the calls of a turn: runs the tools, cuts their texts to the limits, and brings their images into memory. */
export class CallAnswers {
  private readonly plainText: TextCodec;

  constructor(private readonly options: CallAnswersOptions) {
    this.plainText = makePlainCodec(options);
  }

  /** One answer for each call, in order. Calls beyond `maxParallelCalls` are answered by an error and not run. */
  async answer(calls: readonly ParsedToolCall[]): Promise<AnsweredCall[]> {
    const done = await Promise.all(calls.map((call, i) => this.answerCall(call, i)));
    // In the order of the calls, whichever tool was done first.
    for (const { call, outcome } of done) if (outcome) this.count(call.name, outcome);
    return done;
  }

  private async answerCall(call: ParsedToolCall, index: number): Promise<AnsweredCall & { outcome?: ToolOutcome }> {
    const { multiTurn, addMetric, onAnswer } = this.options;
    addMetric("tool_calls", 1);
    const { name, id } = call;
    const describe = (content: ChatMessage["content"]): ChatMessage => ({
      role: "tool",
      ...(name ? { name } : {}),
      ...nameId(id, "tool_call_id"),
      content,
    });
    if (index >= multiTurn.maxParallelCalls) {
      addMetric("too_many_calls", 1);
      const text = `error: only ${multiTurn.maxParallelCalls} calls at a time; this one was not run`;
      const answer = { call, message: describe(text), reward: 0, failure: "too_many_calls" as const };
      onAnswer?.(answer);
      return answer;
    }
    const { outcome, content } = await this.run(call);
    const { reward, failure, state } = outcome;
    const answer = {
      ...{ call, message: describe(content), reward },
      ...(failure ? { failure } : {}),
      ...(state === undefined ? {} : { state }),
    };
    onAnswer?.(answer);
    return { ...answer, outcome };
  }

  private async run(call: ParsedToolCall): Promise<{ outcome: ToolOutcome; content: ChatMessage["content"] }> {
    const { multiTurn, session, trace, tools, addMetric } = this.options;
    const startedAt = now();
    const outcome = await traceTool(trace, call, () => session.call(call));
    if (tools.has(call.name)) addMetric(`tool_s/${call.name}`, (now() - startedAt) / 1000);
    // At once, before other conversations have their turns: hundreds of megabytes would wait in memory.
    const limits = {
      maxTokens: multiTurn.maxToolResponseLength,
      maxChars: multiTurn.maxToolResponseChars,
      side: multiTurn.toolResponseTruncateSide,
    };
    const { text, truncated } = truncateText(outcome.text, limits, this.plainText);
    if (truncated) addMetric("tool_truncated", 1);
    const { omitted, parts, ...rest } = outcome;
    if (omitted) addMetric("tool_media_omitted", omitted.count);
    const said = omitted ? [text, omitted.text].filter((line) => line !== "").join("\n") : text;
    // The whole text is let go of.
    const shown = { ...rest, text: said };
    if (!parts) return { outcome: shown, content: said };
    const content = said === outcome.text ? toContent(parts) : withText(parts, said);
    try {
      const isOwn = tools.get(call.name)?.origin === "own";
      return { outcome: shown, content: await this.show(content, `image of tool "${call.name}"`, isOwn) };
    } catch (error) {
      if (!isRefusedImage(error)) throw error;
      const failed = failCall("bad_image", `error: ${call.name} gave an image that cannot be seen (${error.message})`);
      return { outcome: failed, content: failed.text };
    }
  }

  /**
   * Brings the images of what others said into memory, and finds damaged ones before they are a part of the conversation. What
   * does not fit any more ends it, and is not decoded.
   * @param isTrusted whether paths and addresses are followed: a program of the user's gave them.
   */
  async show(content: ChatMessage["content"], subject: string, isTrusted: boolean): Promise<ChatMessage["content"]> {
    const { engine, imageAccess, signal, remaining } = this.options;
    const { images } = engine;
    const { maxBytes, maxPixels, fetch } = imageAccess;
    const trusted = isTrusted ? { folder: process.cwd(), fetch } : {};
    const shown = await loadContent(content, { subject, maxBytes, maxPixels, ...trusted });
    if (countImageTokens([shown], images) < remaining()) await prepareImages(shown, images, signal());
    return shown;
  }

  private count(tool: string, { failure, hasBadReward, metrics }: ToolOutcome): void {
    const { addMetric, tools } = this.options;
    if (failure) {
      addMetric("tool_errors", 1);
      addMetric(`tool_${failure}`, 1);
      // Not of a name that the model made up: there is no end to these.
      if (tools.has(tool)) addMetric(`tool_errors/${tool}`, 1);
      return;
    }
    if (hasBadReward) addMetric("tool_bad_reward", 1);
    addMetric(`tool_answers/${tool}`, 1);
    for (const [name, value] of Object.entries(metrics)) addMetric(`tool/${tool}/${name}`, value);
  }
}

/** Tokens of text of others, in which no control token is meant. */
export function makePlainCodec({ engine, tokenizer }: Pick<CallAnswersOptions, "engine" | "tokenizer">): TextCodec {
  return {
    tokenize: (text) => tokenizer.tokenizePlain(text),
    detokenize: (ids) => engine.detokenize(ids),
  };
}

/** Whether an image that a tool gave cannot be shown. */
function isRefusedImage(error: unknown): error is CriaError {
  return isBadImage(error) || (error instanceof DataError && error.code === "data/image-refused");
}
