import { ConfigError } from "@cria/core";
import type { Attributes, Span } from "@opentelemetry/api";
import type { SpanAttributes, TraceCarrier, Tracer, TraceSpan } from "./tracer.js";

/**
 * Opens a tracer that sends spans to OpenTelemetry, that is, to the SDK that the program registered; without one,
 * spans are dropped.
 * @throws ConfigError when `@opentelemetry/api` is not installed.
 */
export async function openTracer(): Promise<Tracer> {
  const api = await import("@opentelemetry/api").catch((cause: unknown) => {
    throw new ConfigError("is not installed", {
      code: "config/no-tracing",
      subject: "@opentelemetry/api",
      expected: "the package, beside an SDK that takes the spans (docs/tracing.md)",
      remedy: "npm install @opentelemetry/api @opentelemetry/sdk-node, or switch tracing off",
      cause,
    });
  });
  const { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } = api;
  const kinds = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER };
  const tracer = trace.getTracer("cria");
  const spans = new WeakMap<TraceSpan, Span>();
  const below = (parent: TraceSpan | TraceCarrier | null) => {
    const span = parent && spans.get(parent as TraceSpan);
    if (span) return trace.setSpan(context.active(), span);
    const isCarrier = parent !== null && !("end" in parent);
    return isCarrier ? propagation.extract(ROOT_CONTEXT, parent) : context.active();
  };
  const wrap = (span: Span): TraceSpan => ({
    set: (attributes) => void quietly(() => span.setAttributes(toAttributes(attributes))),
    fail: (type, message) =>
      void quietly(() => {
        span.setAttribute("error.type", type);
        span.setStatus({ code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message }) });
      }),
    end: (at) => void quietly(() => span.end(at)),
  });
  return {
    start: (name, attributes, parent, kind = "internal") => {
      const options = { attributes: toAttributes(attributes), root: parent === null, kind: kinds[kind] };
      const span = quietly(() => tracer.startSpan(name, options, below(parent)));
      if (span === undefined) return silent;
      const wrapped = wrap(span);
      spans.set(wrapped, span);
      return wrapped;
    },
    within: (span, work) => context.with(below(span), work),
    carry: (span) => {
      const carrier: Record<string, string> = {};
      quietly(() => propagation.inject(below(span), carrier));
      return carrier;
    },
  };
}

/** Replaces a span that could not be started. */
const silent: TraceSpan = { set: () => undefined, fail: () => undefined, end: () => undefined };

/** Swallows exceptions of the user's OpenTelemetry processors and exporters: they must not end a training. */
function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

function toAttributes(given: SpanAttributes): Attributes {
  const known = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    known.map(([name, value]) => [name, Array.isArray(value) ? [...value] : value]),
  ) as Attributes;
}
