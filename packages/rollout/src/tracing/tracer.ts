export type SpanValue = string | number | boolean | readonly string[];

/** Attributes by name; undefined ones are left out. */
export type SpanAttributes = Readonly<Record<string, SpanValue | undefined>>;

/** A timed operation within a trace. */
export interface TraceSpan {
  set(attributes: SpanAttributes): void;
  /** Marks the span as failed. @param type from a small set: an error code or a kind of failure. */
  fail(type: string, message?: string): void;
  /** @param at milliseconds since 1970; default: now. */
  end(at?: number): void;
}

/** A span of another process, as headers of W3C Trace Context (traceparent, tracestate). */
export type TraceCarrier = Readonly<Record<string, string>>;

/** "server": the span of a request from another process. */
export type SpanKind = "internal" | "server";

/** Receives spans. No method throws, except errors of `work` itself. */
export interface Tracer {
  /**
   * @param parent a span, or one of another process; null: the span starts a trace.
   * @param kind default "internal".
   */
  start(name: string, attributes: SpanAttributes, parent: TraceSpan | TraceCarrier | null, kind?: SpanKind): TraceSpan;
  /**
   * Runs `work` so that spans started inside it, for example by an agent's HTTP client, become children of this one.
   */
  within<T>(span: TraceSpan, work: () => T): T;
  /** Headers with which another process continues the trace below this span. Empty if no SDK is registered. */
  carry(span: TraceSpan): TraceCarrier;
}

/** A running span, and the tracer that starts its children. */
export interface TraceScope {
  tracer: Tracer;
  span: TraceSpan;
  /** Id of the episode, set on each of its spans. */
  conversation: string;
}
