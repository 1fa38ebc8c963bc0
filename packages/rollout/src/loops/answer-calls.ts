import { type ChatMessage, type CriaError, DataError, type LoadImageOptions, type PolicyEngine } from "@cria/core";
import { toContent } from "@cria/core/internal";
import { now } from "@cria/episodes";
import { nameId } from "@cria/episodes/internal";
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

/** A call, and its answer as shown to the policy. */
export interface AnsweredCall {
  call: ParsedToolCall;
  message: ChatMessage;
  reward: number;
  /** The tool's name for the environment's state, if given. */
  state?: string;
  /** Kind of failure; undefined for an ordinary answer. */
  failure?: NonNullable<ToolOutcome["failure"]> | "too_many_calls";
}

/** A tool's answer, with its text truncated. */
export interface CallRecord {
  outcome: ToolOutcome;
  truncated: boolean;
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
  /** Number of tokens left: images that exceed it are not decoded. */
  remaining: () => number;
  signal: () => AbortSignal | undefined;
  trace?: TraceScope;
  /** Records the answer of a call, or gives a recorded one; `index` is the call's among those of its turn. */
  record?: (call: ParsedToolCall, index: number, ask: () => Promise<CallRecord>) => Promise<CallRecord>;
  /** Called as soon as a call is answered. */
  onAnswer?: (answer: AnsweredCall) => void;
}

/** Answers the calls of a turn: runs the tools, truncates their texts, and loads their images. */
export class CallAnswers {
  private readonly plainText: TextCodec;

  constructor(private readonly options: CallAnswersOptions) {
    this.plainText = makePlainCodec(options);
  }

  /** One answer for each call, in order. Calls beyond `maxParallelCalls` are answered by an error and not run. */
  async answer(calls: readonly ParsedToolCall[]): Promise<AnsweredCall[]> {
    const done = await Promise.all(calls.map((call, i) => this.answerCall(call, i)));
    // Counted in the order of the calls, whichever tool finished first.
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
    const { outcome, content } = await this.run(call, index);
    const { reward, failure, state } = outcome;
    const answer = {
      ...{ call, message: describe(content), reward },
      ...(failure ? { failure } : {}),
      ...(state === undefined ? {} : { state }),
    };
    onAnswer?.(answer);
    return { ...answer, outcome };
  }

  private async run(
    call: ParsedToolCall,
    index: number,
  ): Promise<{ outcome: ToolOutcome; content: ChatMessage["content"] }> {
    const { tools, addMetric, record } = this.options;
    const ask = () => this.ask(call);
    const { outcome, truncated } = await (record ? record(call, index, ask) : ask());
    if (truncated) addMetric("tool_truncated", 1);
    const { omitted, parts, ...rest } = outcome;
    if (omitted) addMetric("tool_media_omitted", omitted.count);
    const said = omitted ? [outcome.text, omitted.text].filter((line) => line !== "").join("\n") : outcome.text;
    const shown = { ...rest, text: said };
    if (!parts) return { outcome: shown, content: said };
    const content = !truncated && said === outcome.text ? toContent(parts) : withText(parts, said);
    try {
      const isOwn = tools.get(call.name)?.origin === "own";
      return { outcome: shown, content: await this.show(content, `image of tool "${call.name}"`, isOwn) };
    } catch (error) {
      if (!isRefusedImage(error)) throw error;
      const failed = failCall("bad_image", `error: ${call.name} gave an image that cannot be seen (${error.message})`);
      return { outcome: failed, content: failed.text };
    }
  }

  private async ask(call: ParsedToolCall): Promise<CallRecord> {
    const { multiTurn, session, trace, tools, addMetric } = this.options;
    const startedAt = now();
    const outcome = await traceTool(trace, call, () => session.call(call));
    if (tools.has(call.name)) addMetric(`tool_s/${call.name}`, (now() - startedAt) / 1000);
    // Truncated at once, before other conversations take their turns: else hundreds of megabytes would wait in memory.
    const limits = {
      maxTokens: multiTurn.maxToolResponseLength,
      maxChars: multiTurn.maxToolResponseChars,
      side: multiTurn.toolResponseTruncateSide,
    };
    const { text, truncated } = truncateText(outcome.text, limits, this.plainText);
    // Without the reference to the whole text.
    return { outcome: { ...outcome, text }, truncated };
  }

  /**
   * Loads the images of a reply and finds damaged ones before they join the conversation. Content that exceeds the
   * remaining tokens ends the conversation and is not decoded.
   * @param isTrusted true: paths and addresses are followed, because the user's program gave them.
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
      // Only names of existing tools: the model could make up any number of others.
      if (tools.has(tool)) addMetric(`tool_errors/${tool}`, 1);
      return;
    }
    if (hasBadReward) addMetric("tool_bad_reward", 1);
    addMetric(`tool_answers/${tool}`, 1);
    for (const [name, value] of Object.entries(metrics)) addMetric(`tool/${tool}/${name}`, value);
  }
}

/** Codec for text of tools and users, which never becomes control tokens. */
export function makePlainCodec({ engine, tokenizer }: Pick<CallAnswersOptions, "engine" | "tokenizer">): TextCodec {
  return {
    tokenize: (text) => tokenizer.tokenizePlain(text),
    detokenize: (ids) => engine.detokenize(ids),
  };
}

/** True for an error about a tool's image that cannot be shown. */
function isRefusedImage(error: unknown): error is CriaError {
  return isBadImage(error) || (error instanceof DataError && error.code === "data/image-refused");
}
