import {
  type AnswerTimes,
  type ChatUsage,
  describeSampling,
  type SpanAttributes,
  type TraceCarrier,
  type Tracer,
  type TraceSpan,
} from "@cria/rollout";
import { describeAnswers, describeModel, describeTimes, failSpan } from "@cria/rollout/internal";
import { makeGone, RequestError, toRequestError } from "../request-error.js";

export interface TracedRequest {
  operation: "chat" | "text_completion";
  /** Name of the model, for clients. */
  model: string;
  /** The client's span; null: the request starts a trace. */
  parent: TraceCarrier | null;
}

/** An answer, as far as a span tells of it. */
interface Answer {
  finishReason: string;
  usage: ChatUsage;
  times?: AnswerTimes;
}

/** The span of one request. It lasts until all work has ended that `run` began: a stream ends after its response began. */
export class RequestTrace {
  private readonly span: TraceSpan;
  private running = 0;
  private hasFailed = false;
  /** The longest of the request's answers, which are made side by side. */
  private readonly times = { queueMs: 0, prefillMs: 0, decodeMs: 0 };

  constructor(
    private readonly tracer: Tracer,
    private readonly request: TracedRequest,
  ) {
    const { operation, model, parent } = request;
    const attributes = { "gen_ai.operation.name": operation, ...describeModel(model) };
    this.span = tracer.start(`${operation} ${model}`, attributes, parent, "server");
  }

  /**
   * Does a part of the request's work inside the span.
   * @param signal aborted when the client has disconnected.
   */
  async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    this.running++;
    try {
      return await this.tracer.within(this.span, work);
    } catch (error) {
      this.fail(error, signal);
      throw error;
    } finally {
      this.running--;
      if (this.running === 0) this.span.end();
    }
  }

  set(attributes: SpanAttributes): void {
    this.span.set(attributes);
  }

  /** Tells what the client asked for. */
  ask(options: Parameters<typeof describeSampling>[0], answers: number): void {
    this.set({ ...describeSampling(options), "gen_ai.request.choice.count": answers > 1 ? answers : undefined });
  }

  /** Counts the times of an answer that was made for this request, and how long it waited for its turn. */
  count(waitedMs: number, { times }: Answer): void {
    const { times: longest } = this;
    longest.queueMs = Math.max(longest.queueMs, waitedMs + (times?.queueMs ?? 0));
    longest.prefillMs = Math.max(longest.prefillMs, times?.prefillMs ?? 0);
    longest.decodeMs = Math.max(longest.decodeMs, times?.decodeMs ?? 0);
  }

  /** Tells of all answers. */
  answer(answers: readonly Answer[]): void {
    const traced = answers.map(({ finishReason, usage }) => ({
      finishReason,
      inputTokens: usage.promptTokens,
      outputTokens: usage.completionTokens,
      reusedTokens: usage.reusedTokens,
    }));
    this.set({ ...describeAnswers(this.request.model, traced), ...describeTimes(this.times) });
  }

  /** Marks the span with its first error. One that the client made is no failure of the server. */
  fail(error: unknown, signal: AbortSignal): void {
    if (this.hasFailed) return;
    this.hasFailed = true;
    const isGone = signal.aborted && !(error instanceof RequestError);
    const known = isGone ? makeGone(error) : toRequestError(error);
    if (known.status < 500) this.set({ "error.type": known.code });
    else failSpan(this.span, error);
  }
}
