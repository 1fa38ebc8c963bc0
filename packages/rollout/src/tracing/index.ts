export { openTracer } from "./open-tracer.js";
export {
  type AnswerTimes,
  describeAnswers,
  describeModel,
  describeSampling,
  describeTimes,
  failSpan,
  type TracedAnswer,
} from "./trace-work.js";
export type { SpanAttributes, SpanKind, SpanValue, TraceCarrier, Tracer, TraceScope, TraceSpan } from "./tracer.js";
