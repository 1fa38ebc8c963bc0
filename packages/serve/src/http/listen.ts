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
  model: [isObject, "the model to serve: serveEngine({ engine, tokenizer, ... })"],
  limits: [isObject, "an object", limitChecks],
  seed: optionChecks.whole,
  implicitSessions: optionChecks.flag,
  authenticate: optionChecks.function,
  origins: any,
  fetchImage: optionChecks.function,
  tracer: [isObject, "a tracer: await openTracer()"],
  host: optionChecks.text,
  port: optionChecks.whole,
  maxConnections: count,
};

/** Time for a client's headers, for the whole request, and between two requests, in milliseconds. */
const HEADERS_MS = 15_000;
const REQUEST_MS = 120_000;
const KEEP_ALIVE_MS = 75_000;

/** Time for a client to read the end of its last answer. */
const LAST_WORDS_MS = 2000;

/** An endpoint that listens. */
export interface Listening {
  readonly endpoint: Endpoint;
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  /**
   * Refuses new requests, gives running ones `deadlineMs` to end (default 0: aborts them), and closes everything.
   * @returns the number of aborted calls of the model.
   */
  close(deadlineMs?: number): Promise<number>;
}

/** Serves a model over HTTP. @throws ConfigError for an option that is unknown, or an address that cannot be bound. */
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
      // The last answers may still be in transit; kept-alive connections become idle after them.
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
        new ConfigError("cannot be bound", {
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
