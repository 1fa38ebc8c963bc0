export type SpanValue = string | number | boolean | readonly string[];

/** By name; what is undefined is left out. */
export type SpanAttributes = Readonly<Record<string, SpanValue | undefined>>;

/** Something that takes time, inside of a trace. */
export interface TraceSpan {
  set(attributes: SpanAttributes): void;
  /** It went wrong. @param type of a small set: the code of an error, a kind of failure. */
  fail(type: string, message?: string): void;
  /** @param at milliseconds since 1970; default: now. */
  end(at?: number): void;
}

/** A span of another process, as the headers of W3C Trace Context (traceparent, tracestate). */
export type TraceCarrier = Readonly<Record<string, string>>;

/** Where spans go. No method throws, except for what `work` throws. */
export interface Tracer {
  /** @param parent null: the span begins a trace, or goes on one of another process. */
  start(name: string, attributes: SpanAttributes, parent: TraceSpan | TraceCarrier | null): TraceSpan;
  /** Calls `work` so that spans which others begin in it, an agent's HTTP client for example, belong to this one. */
  within<T>(span: TraceSpan, work: () => T): T;
  /** What lets another process go on the trace below this span. Empty where nobody takes spans. */
  carry(span: TraceSpan): TraceCarrier;
}

/** A span that is under way, and whoever begins further ones below it. */
export interface TraceScope {
  tracer: Tracer;
  span: TraceSpan;
  /** Names the episode, on each of its spans. */
  conversation: string;
}
