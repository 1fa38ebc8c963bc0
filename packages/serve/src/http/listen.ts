import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { ConfigError } from "@cria/core";
import { type ChecksOf, checkOptions, isObject, optionChecks } from "@cria/core/internal";
import { createAdaptorServer } from "@hono/node-server";
import { createApp } from "./create-app.js";
import { Endpoint, type EndpointLimits, type EndpointOptions } from "./endpoint.js";

export interface ListenOptions extends EndpointOptions {
  /** Default 127.0.0.1. */
  host?: string;
  /** 0 (default): any free one. */
  port?: number;
  /** Connections at once; default 2048. */
  maxConnections?: number;
}

const { any, count } = optionChecks;

const limitChecks: ChecksOf<EndpointLimits> = {
  bodyBytes: count,
  images: count,
  answerTokens: count,
  running: count,
  waiting: count,
  streamBytes: count,
  stallMs: count,
  keepAliveMs: count,
  paceMs: count,
  beginMs: count,
  sessions: count,
  anonymousTokens: count,
};

const listenChecks: ChecksOf<Required<ListenOptions>> = {
  model: [isObject, "what is served: serveEngine({ engine, tokenizer, ... })"],
  limits: [isObject, "an object", limitChecks],
  seed: optionChecks.whole,
  implicitSessions: optionChecks.flag,
  authenticate: optionChecks.function,
  origins: any,
  fetchImage: optionChecks.function,
  host: optionChecks.text,
  port: optionChecks.whole,
  maxConnections: count,
};

/** How long a client may take for its headers, for the whole request, and between two requests, in milliseconds. */
const HEADERS_MS = 15_000;
const REQUEST_MS = 120_000;
const KEEP_ALIVE_MS = 75_000;

/** How long a client may take for the end of its last answer. */
const LAST_WORDS_MS = 2000;

/** An endpoint that listens. */
export interface Listening {
  readonly endpoint: Endpoint;
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  /**
   * Takes no more requests, lets those that run end within `deadlineMs` (default 0: ends them), and closes everything.
   * @returns how many calls of the model were aborted.
   */
  close(deadlineMs?: number): Promise<number>;
}

/** Serves a model over HTTP. @throws ConfigError for an option that is unknown, or an address that cannot be listened to. */
export async function listen(options: ListenOptions): Promise<Listening> {
  checkOptions("listen", options, listenChecks);
  const { host = "127.0.0.1", port = 0, maxConnections = 2048 } = options;
  const endpoint = new Endpoint(options);
  endpoint.measureEventLoop();
  const app = createApp(endpoint);
  const server = createAdaptorServer({
    fetch: app.fetch,
    overrideGlobalObjects: false,
    createServer,
    serverOptions: {
      headersTimeout: HEADERS_MS,
      requestTimeout: REQUEST_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: 5000,
      noDelay: true,
    },
  }) as Server;
  server.maxConnections = maxConnections;
  await start(server, host, port);
  const { port: bound } = server.address() as AddressInfo;
  return {
    endpoint,
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    async close(deadlineMs = 0) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const aborted = await endpoint.drain(deadlineMs);
      endpoint.dispose();
      // What was answered may still be on its way; connections that are kept alive are idle after it.
      const idle = setInterval(() => server.closeIdleConnections(), 10);
      const late = setTimeout(() => server.closeAllConnections(), LAST_WORDS_MS);
      await closed;
      clearInterval(idle);
      clearTimeout(late);
      return aborted;
    },
  };
}

function start(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const taken = cause.code === "EADDRINUSE";
      reject(
        new ConfigError("cannot be listened to", {
          code: "config/cannot-listen",
          subject: `${host}:${port}`,
          expected: "an address of this machine with a free port",
          received: taken ? "a port that is in use" : cause.message,
          remedy: "choose another one with --port and --host; port 0 takes any free one",
          cause,
        }),
      );
    });
    server.listen(port, host, resolve);
  });
}
