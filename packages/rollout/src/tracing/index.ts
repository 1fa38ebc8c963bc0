export { openTracer } from "./open-tracer.js";
export type { SpanAttributes, SpanValue, Tracer, TraceScope, TraceSpan } from "./tracer.js";
