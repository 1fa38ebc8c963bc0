import type { TraceCarrier, Tracer } from "@cria/rollout";
import type { MiddlewareHandler } from "hono";
import { routePath } from "hono/route";
import { RequestTrace } from "./request-trace.js";
import type { ServeEnv } from "./serve-env.js";

/** Routes that ask the model, in a session or not. */
const modelRoute = /^(?:\/sessions\/[^/]+)?\/v1\/(chat\/completions|responses|messages|completions)$/;

/** Makes a span of each request to the model, refused ones too. */
export function traceRequests(tracer: Tracer, model: string): MiddlewareHandler<ServeEnv> {
  return async (c, next) => {
    const route = c.req.method === "POST" ? modelRoute.exec(c.req.path)?.[1] : undefined;
    if (route === undefined) return next();
    const trace = new RequestTrace(tracer, {
      operation: route === "completions" ? "text_completion" : "chat",
      model,
      parent: readParent(c.req.raw.headers),
    });
    c.set("trace", trace);
    const { signal } = c.req.raw;
    await trace.run(async () => {
      await next();
      if (c.error) trace.fail(c.error, signal);
      trace.set({
        "http.request.method": c.req.method,
        "http.route": routePath(c, -1),
        "http.response.status_code": c.res.status,
        "gen_ai.conversation.id": c.get("session") ?? undefined,
      });
    }, signal);
  };
}

/** The client's span, by the headers of W3C Trace Context; null without one. */
function readParent(headers: Headers): TraceCarrier | null {
  const traceparent = headers.get("traceparent");
  if (traceparent === null) return null;
  const tracestate = headers.get("tracestate");
  return { traceparent, ...(tracestate === null ? {} : { tracestate }) };
}
