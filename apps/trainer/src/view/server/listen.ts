import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { ConfigError } from "@cria/core";
import { createAdaptorServer } from "@hono/node-server";
import { type Asset, readAssets } from "./assets.js";
import { type CatalogOptions, RunCatalog } from "./catalog.js";
import { createViewerApp } from "./create-app.js";
import { makeToken } from "./viewer-access.js";

export interface ListenOptions extends CatalogOptions {
  folders: readonly string[];
  host: string;
  /** Null: PORT, or any free one if that is taken. */
  port: number | null;
  /** Default: the built web app. */
  assets?: ReadonlyMap<string, Asset>;
}

/** Default port of the viewer, so that addresses stay the same. */
export const PORT = 7411;
const HEADERS_MS = 15_000;
const MOST_CONNECTIONS = 256;

export interface ListeningViewer {
  /** The whole address, with its token beyond loopback. */
  url: string;
  close: () => Promise<void>;
}

/** @throws ConfigError when the address cannot be bound, or the web app is not built. */
export async function listenViewer({
  folders,
  host,
  port,
  assets = readAssets(),
  everyMs,
}: ListenOptions): Promise<ListeningViewer> {
  const token = makeToken(host);
  const catalog = new RunCatalog(folders, { everyMs });
  const { app, close } = createViewerApp({ catalog, assets, host, token });
  const server = createAdaptorServer({
    fetch: app.fetch,
    overrideGlobalObjects: false,
    createServer,
    serverOptions: { headersTimeout: HEADERS_MS, noDelay: true },
  }) as Server;
  server.maxConnections = MOST_CONNECTIONS;
  await start(server, host, port);
  const { port: bound } = server.address() as AddressInfo;
  const name = host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${name}:${bound}/${token === null ? "" : `?token=${token}`}`,
    close: async () => {
      const freed = close();
      catalog.close();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await Promise.all([closed, freed]);
    },
  };
}

async function start(server: Server, host: string, port: number | null): Promise<void> {
  try {
    await bind(server, host, port ?? PORT);
  } catch (cause) {
    const taken = (cause as NodeJS.ErrnoException).code === "EADDRINUSE";
    if (taken && port === null) return bind(server, host, 0);
    throw new ConfigError("cannot be bound", {
      code: "config/cannot-listen",
      subject: `${host}:${port ?? PORT}`,
      expected: "an address of this machine with a free port",
      received: taken ? "a port that is in use" : (cause as Error).message,
      remedy: "choose another one with --port and --host, or leave --port out",
      cause,
    });
  }
}

function bind(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.removeListener("error", reject);
      resolve();
    });
  });
}
