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

/** Where spans go. No method throws, except for what `work` throws. */
export interface Tracer {
  /** @param parent null: the span begins a trace. */
  start(name: string, attributes: SpanAttributes, parent: TraceSpan | null): TraceSpan;
  /** Calls `work` so that spans which others begin in it, an agent's HTTP client for example, belong to this one. */
  within<T>(span: TraceSpan, work: () => T): T;
}

/** A span that is under way, and whoever begins further ones below it. */
export interface TraceScope {
  tracer: Tracer;
  span: TraceSpan;
  /** Names the episode, on each of its spans. */
  conversation: string;
}
