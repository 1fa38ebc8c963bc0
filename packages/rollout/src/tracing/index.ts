export { openTracer } from "./open-tracer.js";
export {
  describeAnswers,
  describeModel,
  describeSampling,
  describeTimes,
  failSpan,
  type TracedAnswer,
} from "./trace-work.js";
export type { SpanAttributes, SpanKind, SpanValue, TraceCarrier, Tracer, TraceScope, TraceSpan } from "./tracer.js";
