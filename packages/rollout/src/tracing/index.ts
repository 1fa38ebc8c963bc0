export { openTracer } from "./open-tracer.js";
export type { SpanAttributes, SpanValue, TraceCarrier, Tracer, TraceScope, TraceSpan } from "./tracer.js";
