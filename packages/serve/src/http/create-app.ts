import { type Context, Hono } from "hono";
import { cors } from "hono/cors";
import { routePath } from "hono/route";
import { writeAnthropicError } from "../protocol/anthropic.js";
import { writeOpenAiError } from "../protocol/openai-errors.js";
import { makeGone, RequestError, toRequestError } from "../request-error.js";
import { checkOrigin, isAllowedOrigin, readKey } from "./access.js";
import { addChatRoutes } from "./chat-routes.js";
import type { Endpoint } from "./endpoint.js";
import type { ServeEnv } from "./serve-env.js";
import { addSessionRoutes } from "./session-routes.js";
import { addTextRoutes } from "./text-routes.js";
import { traceRequests } from "./trace-requests.js";

/** The endpoint as a hono app: `app.fetch` answers requests, with or without a server. */
export function createApp(endpoint: Endpoint): Hono<ServeEnv> {
  const app = new Hono<ServeEnv>();
  const { origins, metrics, model, tracer } = endpoint;

  app.use(async (c, next) => {
    await next();
    metrics.countRequest(routePath(c, -1), c.res.status);
  });
  if (tracer) app.use(traceRequests(tracer, model.name));
  app.use(
    cors({
      origin: (origin) => (isAllowedOrigin(origin, origins.cors) ? origin : null),
      allowHeaders: ["*", "authorization", "content-type", "x-api-key", "x-session-id", "anthropic-version"],
      maxAge: 600,
    }),
  );
  app.use((c, next) => {
    checkOrigin(c.req.raw.headers, origins);
    return next();
  });

  app.get("/health", (c) =>
    endpoint.draining ? c.json({ status: "ending" }, 503) : c.json({ status: "ok", model: model.name }),
  );

  app.use(async (c, next) => {
    const admission = endpoint.authenticate(readKey(c.req.raw.headers));
    if (!admission) throw makeUnauthorized(readKey(c.req.raw.headers));
    const named = /^\/sessions\/([^/]+)/.exec(c.req.path)?.[1] ?? c.req.header("x-session-id") ?? null;
    const bound = admission.session ?? null;
    if (named !== null && bound !== null && named !== bound)
      throw new RequestError(403, "belongs to another session", { code: "serve/other-session", subject: "key" });
    c.set("session", bound ?? named);
    return next();
  });

  app.get("/metrics", async (c) => c.text(await metrics.write(), 200, { "content-type": metrics.contentType }));
  addSessionRoutes(app, endpoint);
  const api = new Hono<ServeEnv>();
  api.get("/v1/models", (c) => c.json({ object: "list", data: [describeModel(endpoint)] }));
  api.get("/v1/models/:name{.+}", (c) => c.json(describeModel(endpoint)));
  addChatRoutes(api, endpoint);
  addTextRoutes(api, endpoint);
  app.route("/", api);
  app.route("/sessions/:session", api);

  app.notFound((c) => refuse(c, makeNotFound(c)));
  app.onError((error, c) => {
    // A client that has disconnected gets no answer.
    const given = c.req.raw.signal.aborted ? makeGone(error) : toRequestError(error);
    return refuse(c, given);
  });
  return app;
}

function refuse(c: Context<ServeEnv>, error: RequestError): Response {
  const isMessages = /\/v1\/messages(\/|$)/.test(c.req.path);
  if (error.retryAfter !== undefined) c.header("retry-after", String(error.retryAfter));
  // Closing the connection drops the unread rest of the body.
  if (error.status === 413) c.header("connection", "close");
  return c.json(isMessages ? writeAnthropicError(error) : writeOpenAiError(error), error.status as 400);
}

function describeModel({ model, created }: Endpoint) {
  return {
    id: model.name,
    object: "model",
    created,
    owned_by: "cria",
    // Anthropic's clients read these fields.
    type: "model",
    display_name: model.name,
    created_at: new Date(created * 1000).toISOString(),
    max_model_len: model.contextSize,
    architecture: { input_modalities: model.images ? ["text", "image"] : ["text"], output_modalities: ["text"] },
    system_fingerprint: model.fingerprint,
  };
}

function makeUnauthorized(key: string | null): RequestError {
  return new RequestError(401, key === null ? "is missing" : "is wrong", {
    code: "serve/bad-key",
    subject: "API key",
    expected: "the server's key, as Authorization: Bearer <key> or x-api-key: <key>",
    received: key === null ? "none" : "another",
  });
}

function makeNotFound(c: Context): RequestError {
  return new RequestError(404, "is not known", {
    code: "serve/unknown-route",
    subject: `${c.req.method} ${c.req.path.slice(0, 200)}`,
    expected: "POST /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages, or GET /v1/models",
  });
}
