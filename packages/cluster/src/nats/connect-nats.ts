import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { type ConnectionOptions, checkServerIdentity } from "node:tls";
import { ClusterError, ConfigError, readOrThrow } from "@cria/core";
import {
  type Authenticator,
  connect,
  credsAuthenticator,
  errors,
  type NatsConnection,
  nkeyAuthenticator,
  type TlsOptions,
} from "@nats-io/transport-node";
import { cleanText } from "../bus/job-record.js";
import { inboxOf, type Role } from "./names.js";

/** Servers and credentials. Secrets are files, never texts: other users may see arguments and environment variables. */
export interface NatsServers {
  /** `nats://host:4222` or `tls://host:4222`; several: any of a cluster. */
  servers: string | readonly string[];
  /** A file with a JWT and its key, as `nsc` writes it. */
  credsFile?: string;
  /** A file with the seed of an nkey, as `nk -gen user` writes it. */
  nkeyFile?: string;
  /** The certificate authority of the server, PEM. Default: the ones that Node trusts. */
  caFile?: string;
  /** A certificate of this client, PEM, for servers that ask for one. */
  certFile?: string;
  keyFile?: string;
  /** Milliseconds that each of two attempts to connect may take. Default: 10,000. */
  connectMs?: number;
}

/**
 * @throws ConfigError "config/unreadable"; ClusterError "cluster/unreachable", "cluster/refused" for wrong credentials,
 * or "cluster/tls" for certificates.
 */
export async function connectNats(options: NatsServers, role: Role, name: string): Promise<NatsConnection> {
  const { credsFile, nkeyFile } = options;
  const authenticators: Authenticator[] = [];
  if (credsFile) authenticators.push(credsAuthenticator(await readSecret(credsFile, "credentials of NATS")));
  if (nkeyFile) {
    const text = Buffer.from(await readSecret(nkeyFile, "the seed of an nkey")).toString();
    authenticators.push(nkeyAuthenticator(new TextEncoder().encode(text.trim())));
  }
  const tls = await readTls(options);
  const tryOnce = () =>
    connect({
      servers: [options.servers].flat(),
      name,
      inboxPrefix: inboxOf(role),
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      reconnectJitter: 100,
      reconnectJitterTLS: 500,
      // A silent connection is given up within 15 s.
      pingInterval: 5_000,
      timeout: options.connectMs ?? 10_000,
      ...(authenticators.length > 0 && { authenticator: authenticators }),
      ...(tls && { tls }),
    });
  try {
    // The time also passes while this process loads modules and cannot read an answer: a timeout is tried once more.
    return await tryOnce().catch((cause: unknown) => {
      if (!(cause instanceof errors.TimeoutError)) throw cause;
      return tryOnce();
    });
  } catch (cause) {
    throw connectError(options.servers, cause);
  }
}

/** The error of requests while a bus is opened: a server that does not answer them is no nearer than one that is away. */
export function openError(servers: NatsServers["servers"], cause: unknown): unknown {
  const isUnanswered =
    cause instanceof Error && [cause, cause.cause].some((each) => each instanceof errors.TimeoutError);
  return isUnanswered ? connectError(servers, cause) : cause;
}

function connectError(servers: NatsServers["servers"], cause: unknown): ClusterError {
  const received = cleanText(cause instanceof Error ? cause.message : String(cause));
  const fail = (summary: string, code: string, remedy: string) =>
    new ClusterError(summary, { code, subject: nameServers(servers), received, remedy, cause });
  if (/authori[sz]ation|authentication|permission/i.test(received))
    return fail(
      "refuses these credentials",
      "cluster/refused",
      "give the key or credentials of a user that the server knows",
    );
  if (/certificate|\btls\b|\bssl\b/i.test(received))
    return fail(
      "is not trusted, or does not trust this client",
      "cluster/tls",
      "give the authority of the server's certificate, and a client certificate if the server asks for one",
    );
  // A server that requires a client certificate closes the connection without an error.
  const also = received === "timeout" ? ", and whether it asks for a client certificate" : "";
  return fail("cannot be reached", "cluster/unreachable", `check that nats-server runs there${also}`);
}

/** Names of servers in errors, without possible secrets. */
export const nameServers = (servers: NatsServers["servers"]): string =>
  [servers]
    .flat()
    .map((server) => server.replace(/\/\/[^@/]*@/, "//"))
    .join(", ");

const readSecret = (file: string, what: string): Promise<Uint8Array> =>
  readOrThrow(() => readFile(file), ConfigError, { subject: file, expected: `a file with ${what}` });

async function readTls({ caFile, certFile, keyFile, servers }: NatsServers): Promise<TlsOptions | undefined> {
  const read = async (file: string | undefined, what: string) => file && (await readSecret(file, what)).toString();
  const parts = {
    ca: await read(caFile, "a certificate authority, PEM"),
    cert: await read(certFile, "a certificate, PEM"),
    key: await read(keyFile, "a certificate's key, PEM"),
  };
  const given = Object.entries(parts).filter(([, text]) => text !== undefined);
  if (given.length === 0 && ![servers].flat().some((server) => server.startsWith("tls://"))) return undefined;
  const options: ConnectionOptions = { ...Object.fromEntries(given), checkServerIdentity: expectServer(servers) };
  return options as TlsOptions;
}

/**
 * Checks a server's certificate against its configured hosts. When the client dials an IP address, it gives Node no
 * host, and Node expects "localhost"; this expects one of the configured addresses.
 */
export function expectServer(servers: NatsServers["servers"]): typeof checkServerIdentity {
  const hosts = [servers].flat().map(readHost);
  const addresses = hosts.filter((host) => isIP(host) > 0);
  return (dialled, certificate) => {
    if (dialled !== "localhost" || addresses.length === 0) return checkServerIdentity(dialled, certificate);
    const expected = hosts.includes("localhost") ? [...addresses, "localhost"] : addresses;
    const errors = expected.map((host) => checkServerIdentity(host, certificate));
    return errors.includes(undefined) ? undefined : errors[0];
  };
}

function readHost(server: string): string {
  const { hostname } = new URL(server.includes("://") ? server : `nats://${server}`);
  return hostname.replace(/^\[|\]$/g, "");
}
