import type { ClusterBus, NatsBusOptions, Role } from "@cria/cluster";
import { ConfigError } from "@cria/core";
import { checkArgument } from "@cria/trainer/internal";

const bus = {
  type: "string",
  description: "nats://host:4222 or tls://host:4222 of a nats-server; several of one cluster by commas",
} as const;

/** Options of every command that may reach a bus. Secrets are files: words of a command line are seen by others. */
export const busArgs = {
  bus,
  creds: { type: "string", description: "File with a JWT and its key, as nsc writes it" },
  nkey: { type: "string", description: "File with the seed of an nkey, as nk -gen user writes it" },
  ca: {
    type: "string",
    description: "Certificate authority of the bus, PEM (default: those that Node trusts)",
  },
  cert: { type: "string", description: "Certificate of this client, PEM, where the bus asks for one" },
  "cert-key": { type: "string", description: "The key of --cert, PEM" },
  prefix: {
    type: "string",
    description: "Names on the bus begin with it: one for each training that shares a server (default: cria)",
  },
} as const;

/** The same, for commands that are nothing without a bus. */
export const requiredBusArgs = { ...busArgs, bus: { ...bus, required: true } } as const;

/** What a command line gives of `busArgs`. */
export type BusWords = { [Option in keyof typeof busArgs]?: string };

/** Where a bus is, and as whom it is reached: the part of `openNatsBus`'s options that people say. */
export type BusAddress = Pick<
  NatsBusOptions,
  "servers" | "credsFile" | "nkeyFile" | "caFile" | "certFile" | "keyFile" | "prefix"
>;

/**
 * Reads the words about a bus. Nothing is reached yet, so that what is wrong is said before anything is loaded.
 * @returns undefined where `--bus` is not given.
 * @throws ConfigError "config/bad-argument" for an address that is none or holds a secret, and for words that miss others;
 * "config/missing-file" and the like for files that do not exist.
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

/** How a bus is called before people: its servers and its prefix, which hold no secret. */
export function nameBus({ servers, prefix }: BusAddress): string {
  const where = [servers].flat().join(",");
  return prefix === undefined ? where : `${where} (${prefix})`;
}

/**
 * Reaches a bus as one of its roles. Close it afterwards.
 * @param options what the role says besides: a coordinator's times and bounds, how long others wait for one (`waitMs`).
 * @throws what `openNatsBus` throws: ClusterError "cluster/unreachable", "cluster/refused", "cluster/no-bus", ...
 */
export async function openBusAs(
  role: Role,
  address: BusAddress,
  options: Omit<NatsBusOptions, keyof BusAddress | "role"> = {},
): Promise<ClusterBus> {
  // The client of NATS is loaded by those who use it.
  const { openNatsBus } = await import("@cria/cluster");
  return openNatsBus({ ...options, ...address, role });
}

function readServers(text: string): string[] {
  const servers = text.split(",").map((server) => server.trim());
  for (const server of servers) {
    if (/^(?:(?:nats|tls):\/\/)?[A-Za-z0-9.:[\]_-]+$/.test(server)) continue;
    // What stands before an @ may be a password: it is not repeated.
    const hasSecret = server.includes("@");
    throw new ConfigError(hasSecret ? "holds a name or a password" : "is no address of a bus", {
      code: "config/bad-argument",
      subject: "--bus",
      expected: "nats://host:4222 or tls://host:4222, several by commas",
      received: hasSecret ? server.replace(/^(\w+:\/\/)?.*@/, "$1...@") : JSON.stringify(server),
      remedy: hasSecret ? "give a file that holds it: --creds or --nkey" : undefined,
    });
  }
  return servers;
}

const missesOther = (option: string, other: string) =>
  new ConfigError("misses another option", {
    code: "config/bad-argument",
    subject: `--${option}`,
    expected: `--${other} beside it`,
    received: `no --${other}`,
  });
