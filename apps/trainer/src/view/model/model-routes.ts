import { CriaError } from "@cria/core";
import type { DumpLine } from "@cria/records";
import { RequestError } from "@cria/serve/internal";
import { checkReplayModel } from "@cria/trainer/internal";
import type { Alternatives, ApiError, ForkEvent, NowLogprobs } from "@cria/viewer/api";
import type { Context, Env, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { z } from "zod";
import { ModelKeeper } from "./model-keeper.js";

/** The conversation of a question. */
export interface AskedEpisode {
  /** Its run's folder. */
  path: string;
  /** True if a process trains into it now. */
  isRunning: boolean;
  /** True for a conversation of a validation. */
  isValidation: boolean;
  line: DumpLine;
}

export interface ModelRoutes {
  /** Aborts running work, and frees the model. */
  close(): Promise<void>;
}

const MOST_BODY = 1 << 16;
const MOST_ALTERNATIVES = 50;

const common = { confirm: z.boolean().optional() };
const token = z.number().int().min(0);
const alternativesSchema = z.object({
  ...common,
  token,
  count: z.number().int().min(1).max(MOST_ALTERNATIVES).default(10),
});
const nowSchema = z.object(common);
const forkSchema = z.object({
  ...common,
  token,
  replacement: token.optional(),
  seed: z.number().int().min(0).max(0xffffffff).optional(),
});

/**
 * `POST /api/runs/:run/dumps/:dump/episodes/:line/{alternatives,now,fork}`. Errors are thrown, except for a run in
 * training.
 * @param findEpisode reads run, dump and line of a request's address.
 * @throws RequestError 404
 */
export function addModelRoutes<E extends Env>(
  app: Hono<E>,
  findEpisode: (c: Context<E>) => Promise<AskedEpisode>,
  keeper = new ModelKeeper(),
): ModelRoutes {
  const place = "/api/runs/:run/dumps/:dump/episodes/:line{\\d{1,9}}";
  app.use(`${place}/*`, bodyLimit({ maxSize: MOST_BODY, onError: () => refuseBody("a smaller one") as never }));

  /** A question whose answer is a JSON object. */
  const ask = <Schema extends z.ZodType<{ confirm?: boolean }>>(
    name: string,
    schema: Schema,
    answer: (c: Context<E>, episode: AskedEpisode, given: z.infer<Schema>) => Promise<Response>,
  ) =>
    app.post(`${place}/${name}`, async (c) => {
      const given = await readBody(c, schema);
      const episode = await findEpisode(c);
      if (episode.isRunning && given.confirm !== true) return c.json(NEEDS_CONFIRM, 409);
      await checkModel(episode.path);
      return answer(c, episode, given);
    });

  ask("alternatives", alternativesSchema, async (c, { path, line, isValidation }, given) => {
    const choices = await keeper.use(path, c.req.raw.signal, (replay, signal) =>
      replay.alternatives(line, given.token, { count: given.count, validation: isValidation, signal }),
    );
    return c.json({ token: given.token, choices } satisfies Alternatives);
  });

  ask("now", nowSchema, async (c, { path, line, isValidation }) => {
    const now = await keeper.use(path, c.req.raw.signal, (replay, signal) =>
      replay.scoreNow(line, { validation: isValidation, signal }),
    );
    return c.json(now satisfies NowLogprobs);
  });

  ask("fork", forkSchema, async (c, { path, line, isValidation }, { token, replacement, seed }) =>
    streamLines<ForkEvent>(c.req.raw.signal, async (send, gone) => {
      send({ type: "loading" });
      const { line: forked } = await keeper.use(path, gone, (replay, signal) =>
        replay.fork(line, token, {
          replacement,
          seed,
          validation: isValidation,
          liveTools: true,
          onText: (role, text) => send({ type: "text", role, text }),
          signal,
        }),
      );
      const { reward, success, finish_reason: finish } = forked;
      send({ type: "end", reward, success, finish, tokens: forked.token_ids.length });
    }),
  );

  return { close: () => keeper.close() };
}

const NEEDS_CONFIRM: ApiError = {
  error: {
    message: "This run is training: a second copy of its model takes memory and time from it",
    remedy: "Ask again with confirm: true.",
    needs: "confirm",
  },
};

async function readBody<Schema extends z.ZodType>(c: Context, schema: Schema): Promise<z.infer<Schema>> {
  let body: unknown;
  try {
    body = JSON.parse((await c.req.text()) || "{}");
  } catch {
    throw refuseBody("JSON");
  }
  const { data, error } = schema.safeParse(body);
  if (data !== undefined) return data;
  const [issue] = error!.issues;
  throw refuseBody(`${issue!.path.join(".") || "the body"}: ${issue!.message}`);
}

function refuseBody(expected: string): RequestError {
  return new RequestError(400, "is wrong", { code: "view/bad-request", subject: "the request's body", expected });
}

/** @throws RequestError 404 when there is no model to ask. */
async function checkModel(path: string): Promise<void> {
  try {
    await checkReplayModel(path);
  } catch (error) {
    if (!(error instanceof CriaError)) throw error;
    const { code, subject = "the run's model", expected, received, remedy } = error;
    throw new RequestError(404, "is not available", { code, subject, expected, received, remedy });
  }
}

/**
 * JSON lines as they come. A failure is the last of them.
 * @param signal of the request; the one that `work` gets also aborts when the reader disconnects.
 */
function streamLines<Event extends { type: string }>(
  signal: AbortSignal,
  work: (send: (event: Event | ForkEvent) => void, gone: AbortSignal) => Promise<void>,
): Response {
  const controller = new AbortController();
  const gone = AbortSignal.any([signal, controller.signal]);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async start(stream) {
      const send = (event: Event | ForkEvent) => {
        if (!gone.aborted) stream.enqueue(encoder.encode(`${JSON.stringify(event)}\n`));
      };
      // Not awaited here: nobody reads a stream before it is returned.
      void work(send, gone)
        .catch((error: unknown) => send({ type: "error", message: describeError(error) }))
        .finally(() => {
          if (!controller.signal.aborted) stream.close();
        });
    },
    cancel: () => controller.abort(new Error("the reader is gone")),
  });
  return new Response(body, { headers: { "content-type": "application/x-ndjson", "cache-control": "no-store" } });
}

function describeError(error: unknown): string {
  return error instanceof CriaError ? error.message : "This failed in cria view";
}
