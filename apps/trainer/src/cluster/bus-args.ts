import type { ClusterBus, NatsBusOptions, Role } from "@cria/cluster";
import { ConfigError } from "@cria/core";
import { checkArgument } from "@cria/trainer/internal";

const bus = {
  type: "string",
  description:
    "nats://host:4222 or tls://host:4222 of a nats-server; several servers of one cluster, separated by commas",
} as const;

/**
 * Options of every command that may connect to a bus. Secrets are files: other users can see words of a command line.
 */
export const busArgs = {
  bus,
  creds: { type: "string", description: "File with a JWT and its key, as nsc writes it" },
  nkey: { type: "string", description: "File with the seed of an nkey, as nk -gen user writes it" },
  ca: {
    type: "string",
    description: "Certificate authority of the bus, PEM (default: those that Node trusts)",
  },
  cert: { type: "string", description: "Certificate of this client, PEM, if the bus asks for one" },
  "cert-key": { type: "string", description: "The key of --cert, PEM" },
  prefix: {
    type: "string",
    description: "Prefix of the names on the bus: a different one for each training on a server (default: cria)",
  },
} as const;

/** The same options, for commands that require a bus. */
export const requiredBusArgs = { ...busArgs, bus: { ...bus, required: true } } as const;

/** Values of `busArgs` from a command line. */
export type BusWords = { [Option in keyof typeof busArgs]?: string };

/** The address of a bus, and credentials: the part of `openNatsBus`'s options that users give. */
export type BusAddress = Pick<
  NatsBusOptions,
  "servers" | "credsFile" | "nkeyFile" | "caFile" | "certFile" | "keyFile" | "prefix"
>;

/**
 * Reads the options of a bus, without connecting, so that mistakes show before anything is loaded.
 * @returns undefined without `--bus`.
 * @throws ConfigError "config/bad-argument" for an invalid address or one with a secret, and for options that need
 * others; "config/missing-file" and the like for files that do not exist.
 */
export function readBusArgs(words: BusWords & { bus: string }): BusAddress;
export function readBusArgs(words: BusWords): BusAddress | undefined;
export function readBusArgs(words: BusWords): BusAddress | undefined {
  if (words.bus === undefined) {
    const lonely = (Object.keys(busArgs) as (keyof BusWords)[]).find((option) => words[option] !== undefined);
    if (lonely !== undefined) throw missesOther(lonely, "bus");
    return undefined;
  }
  if (words.cert !== undefined && words["cert-key"] === undefined) throw missesOther("cert", "cert-key");
  if (words.cert === undefined && words["cert-key"] !== undefined) throw missesOther("cert-key", "cert");
  const file = (option: keyof BusWords) => {
    const path = words[option];
    return path === undefined ? undefined : checkArgument(`--${option}`, path);
  };
  return {
    servers: readServers(words.bus),
    credsFile: file("creds"),
    nkeyFile: file("nkey"),
    caFile: file("ca"),
    certFile: file("cert"),
    keyFile: file("cert-key"),
    prefix: words.prefix,
  };
}

/** Name of a bus for people: its servers and its prefix, which hold no secret. */
export function nameBus({ servers, prefix }: BusAddress): string {
  const where = [servers].flat().join(",");
  return prefix === undefined ? where : `${where} (${prefix})`;
}

/**
 * Connects to a bus in one of its roles. Close it afterwards.
 * @param options further options of the role: a coordinator's times and bounds, the time that others wait for a
 * coordinator (`waitMs`).
 * @throws the errors of `openNatsBus`: ClusterError "cluster/unreachable", "cluster/refused", "cluster/no-bus", ...
 */
export async function openBusAs(
  role: Role,
  address: BusAddress,
  options: Omit<NatsBusOptions, keyof BusAddress | "role"> = {},
): Promise<ClusterBus> {
  // Loads the client of NATS only when it is needed.
  const { openNatsBus } = await import("@cria/cluster");
  return openNatsBus({ ...options, ...address, role });
}

function readServers(text: string): string[] {
  const servers = text.split(",").map((server) => server.trim());
  for (const server of servers) {
    if (/^(?:(?:nats|tls):\/\/)?[A-Za-z0-9.:[\]_-]+$/.test(server)) continue;
    // The text before an @ may be a password: it is not repeated.
    const hasSecret = server.includes("@");
    throw new ConfigError(hasSecret ? "holds a name or a password" : "is not the address of a bus", {
      code: "config/bad-argument",
      subject: "--bus",
      expected: "nats://host:4222 or tls://host:4222, several separated by commas",
      received: hasSecret ? server.replace(/^(\w+:\/\/)?.*@/, "$1...@") : JSON.stringify(server),
      remedy: hasSecret ? "give a file that holds it: --creds or --nkey" : undefined,
    });
  }
  return servers;
}

const missesOther = (option: string, other: string) =>
  new ConfigError("needs another option", {
    code: "config/bad-argument",
    subject: `--${option}`,
    expected: `--${other} too`,
    received: `no --${other}`,
  });
