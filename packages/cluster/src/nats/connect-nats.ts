import { readFile } from "node:fs/promises";
import { ClusterError, ConfigError, readOrThrow } from "@cria/core";
import {
  type Authenticator,
  connect,
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
  type TlsOptions,
} from "@nats-io/transport-node";
import { cleanText } from "../bus/job-record.js";
import { inboxOf, type Role } from "./names.js";

/** Whom to reach, and as whom. Secrets are files, never texts: arguments and environments are seen by others. */
export interface NatsServers {
  /** `nats://host:4222` or `tls://host:4222`; several: any of a cluster. */
  servers: string | readonly string[];
  /** A file with a JWT and its key, as `nsc` writes it. */
  credsFile?: string;
  /** A file with the seed of an nkey, as `nk -gen user` writes it. */
  nkeyFile?: string;
  /** The certificate authority of the server, PEM. Default: those that Node trusts. */
  caFile?: string;
  /** A certificate of this client, PEM, where the server asks for one. */
  certFile?: string;
  keyFile?: string;
}

/** @throws ConfigError "config/unreadable"; ClusterError "cluster/unreachable", or "cluster/refused" for wrong credentials. */
export async function connectNats(options: NatsServers, role: Role, name: string): Promise<NatsConnection> {
  const { credsFile, nkeyFile } = options;
  const authenticators: Authenticator[] = [];
  if (credsFile) authenticators.push(credsAuthenticator(await readSecret(credsFile, "credentials of NATS")));
  if (nkeyFile) {
    const text = Buffer.from(await readSecret(nkeyFile, "the seed of an nkey")).toString();
    authenticators.push(nkeyAuthenticator(new TextEncoder().encode(text.trim())));
  }
  const tls = await readTls(options);
  const servers = [options.servers].flat();
  try {
    return await connect({
      servers,
      name,
      inboxPrefix: inboxOf(role),
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      reconnectJitter: 100,
      pingInterval: 20_000,
      timeout: 10_000,
      ...(authenticators.length > 0 && { authenticator: authenticators }),
      ...(tls && { tls }),
    });
  } catch (cause) {
    const text = cleanText(cause instanceof Error ? cause.message : String(cause));
    const refused = /authori[sz]ation|authentication|permission/i.test(text);
    throw new ClusterError(refused ? "refuses these credentials" : "cannot be reached", {
      code: refused ? "cluster/refused" : "cluster/unreachable",
      subject: servers.map(hideSecret).join(", "),
      received: text,
      remedy: refused ? "name the file of a user that the server knows" : "look whether nats-server runs there",
      cause,
    });
  }
}

const hideSecret = (server: string): string => server.replace(/\/\/[^@/]*@/, "//");

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
  if (given.length > 0) return Object.fromEntries(given);
  return [servers].flat().some((server) => server.startsWith("tls://")) ? {} : undefined;
}
