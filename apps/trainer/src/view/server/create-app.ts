import { CriaError } from "@cria/core";
import { RequestError } from "@cria/serve/internal";
import { diagnoseRun } from "@cria/trainer";
import type { ApiError, RunDetail } from "@cria/viewer/api";
import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import type { RunReader } from "../../runs/run-reader.js";
import { imageNamePattern, readImageFile } from "../answers/image-file.js";
import { answerEpisode, answerGroup, answerPage, findDump, refuseUnknown } from "../answers/open-dump.js";
import { findPrompt, listPrompts } from "../answers/prompts.js";
import { makeRunAnswers } from "../answers/run-answers.js";
import { IndexStore } from "../index/index-store.js";
import { addModelRoutes } from "../model/model-routes.js";
import type { Asset } from "./assets.js";
import type { RunCatalog } from "./catalog.js";
import { EventStreams, MOST_STREAMS } from "./event-stream.js";
import { readPageOptions } from "./read-query.js";
import { guard, safeHeaders } from "./viewer-access.js";

/** Cache header for files named by their content. */
const unchanging = "private, max-age=31536000, immutable";

export interface ViewerOptions {
  catalog: RunCatalog;
  /** Files of the web app by their paths. */
  assets: ReadonlyMap<string, Asset>;
  /** Address that the server listens on. */
  host: string;
  /** Null on loopback. */
  token: string | null;
}

export interface ViewerEnv {
  /** Undefined for requests without a server, in tests. */
  Bindings: Partial<HttpBindings> | undefined;
}

/** The viewer's server as a hono app. `close` ends its streams, and frees the model. */
export interface ViewerApp {
  app: Hono<ViewerEnv>;
  close: () => Promise<void>;
}

export function createViewerApp({ catalog, assets, host, token }: ViewerOptions): ViewerApp {
  const app = new Hono<ViewerEnv>();
  const store = new IndexStore();
  const streams = new EventStreams(catalog);

  app.use(async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(safeHeaders)) c.res.headers.set(name, value);
    if (!c.res.headers.has("cache-control")) c.res.headers.set("cache-control", "no-store");
  });
  app.use(guard(host, token));

  const findRun = async (c: Context<ViewerEnv>): Promise<RunReader> => {
    const id = c.req.param("run")!;
    const reader = await catalog.find(id);
    if (reader) return reader;
    throw refuseUnknown(`run ${id}`, "a run, as GET /api/runs lists them");
  };
  const openDump = async (c: Context<ViewerEnv>) => findDump(await findRun(c), c.req.param("dump")!);

  app.get("/api/runs", async (c) => c.json(await catalog.list()));
  app.get("/api/runs/:run", async (c) => c.json(await describeRun(await findRun(c))));
  for (const [name, answer] of Object.entries(makeRunAnswers()))
    app.get(`/api/runs/:run/${name}`, async (c) => c.json((await answer(await findRun(c), c)) as object));
  app.get("/api/runs/:run/prompts", async (c) =>
    c.json(await listPrompts(store, await findRun(c), c.req.query("search") ?? "", c.req.raw.signal)),
  );
  app.get("/api/runs/:run/prompts/:prompt", async (c) =>
    c.json(await findPrompt(store, await findRun(c), c.req.param("prompt"), c.req.raw.signal)),
  );
  app.get("/api/runs/:run/dumps/:dump", async (c) => {
    const { run, dump } = c.req.param();
    const onIndexed = () => catalog.tell({ type: "dump", run, dump });
    return c.json(await answerPage(store, await openDump(c), readPageOptions(c), onIndexed));
  });
  app.get("/api/runs/:run/dumps/:dump/groups/:uid", async (c) =>
    c.json(await answerGroup(store, await openDump(c), c.req.param("uid"))),
  );
  app.get("/api/runs/:run/dumps/:dump/episodes/:line{\\d{1,9}}", async (c) =>
    c.json(await answerEpisode(store, await openDump(c), Number(c.req.param("line")))),
  );
  app.get(`/api/runs/:run/images/:name{${imageNamePattern}}`, async (c) => {
    const { content, type } = await readImageFile(await findRun(c), c.req.param("name"));
    return c.body(content, 200, { "content-type": type, "cache-control": unchanging });
  });
  const models = addModelRoutes(app, async (c) => {
    const reader = await findRun(c);
    const dump = findDump(reader, c.req.param("dump")!);
    const { line } = await answerEpisode(store, dump, Number(c.req.param("line")));
    const isValidation = dump.kind !== "training";
    return { path: reader.run.path, isRunning: reader.summary.status === "running", isValidation, line };
  });
  app.get("/api/events", (c) => {
    if (streams.isFull)
      throw new RequestError(429, "are too many", {
        code: "view/busy",
        subject: "open pages",
        expected: `at most ${MOST_STREAMS}`,
        received: "one more",
        remedy: "close some",
      });
    return streams.answer(() => c.env?.outgoing?.destroy());
  });
  app.all("/api/*", (c) => {
    throw refuseUnknown(`${c.req.method} ${c.req.path}`, "an address of the API (docs/view-api.md)");
  });

  app.get("*", (c) => {
    // The app routes by the part after the #.
    const asset = assets.get(c.req.path.slice(1)) ?? (c.req.path === "/" ? assets.get("index.html") : undefined);
    if (!asset) throw refuseUnknown(c.req.path, "a file of the viewer");
    const kept = asset.isHashed ? unchanging : "no-cache";
    return c.body(asset.content, 200, { "content-type": asset.type, "cache-control": kept });
  });

  app.notFound((c) => refuse(c, refuseUnknown(`${c.req.method} ${c.req.path}`, "GET")));
  app.onError((error, c) => refuse(c, error));
  const close = () => {
    streams.close();
    return models.close();
  };
  return { app, close };
}

async function describeRun(reader: RunReader): Promise<RunDetail> {
  const { summary, config, dumps, live, run, isShared } = reader;
  return {
    summary,
    config,
    dumps: dumps.map(({ id, kind, step, size }) => ({ id, kind, step, size })),
    findings: await diagnoseRun(run.path),
    live,
    isShared,
  };
}

function refuse(c: Context, error: unknown): Response {
  const [status, answer] = describeError(error);
  return c.json(answer, status as 400);
}

/** Cria's errors keep their text; of others only a missing file is reported. */
function describeError(error: unknown): [number, ApiError] {
  const gone = (error as NodeJS.ErrnoException).code === "ENOENT";
  if (gone) return [404, { error: { message: "The file no longer exists", remedy: "Open the run again." } }];
  if (!(error instanceof CriaError)) return [500, { error: { message: "This failed in cria view", remedy: null } }];
  const { subject, expected, received, remedy } = error;
  // The first line has subject and summary; the others are for terminals.
  const [summary] = error.message.split("\n", 1);
  const parts = [summary, expected && `expected ${expected}`, received && `received ${received}`];
  const message = parts.filter(Boolean).join("; ") || String(subject);
  return [error instanceof RequestError ? error.status : 400, { error: { message, remedy: remedy ?? null } }];
}
