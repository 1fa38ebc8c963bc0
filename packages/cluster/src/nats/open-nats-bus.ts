import { type ChecksOf, checkOptions, isObject, isText, optionChecks } from "@cria/core/internal";
import { busChecks } from "../bus/bus-checks.js";
import type { BusOptions, BusTimes } from "../bus/job-bus.js";
import { openBus } from "../bus/open-bus.js";
import { type ClusterBus, toClusterBus } from "../cluster-bus.js";
import { nameServers } from "./connect-nats.js";
import type { NatsBounds } from "./create-streams.js";
import { type Role, roles } from "./names.js";
import { type NatsStoreOptions, openNatsStore } from "./open-nats-store.js";

export interface NatsBusOptions extends NatsStoreOptions, BusOptions {}

const { number, text } = optionChecks;

const timeChecks: ChecksOf<BusTimes> = { ackWaitMs: number, presenceMs: number, leaseMs: number };
const boundChecks: ChecksOf<NatsBounds> = {
  blobBytes: number,
  oneBlobBytes: number,
  recordBytes: number,
  jobBytes: number,
  hours: number,
  replicas: number,
};

const natsChecks: ChecksOf<Required<NatsBusOptions>> = {
  ...busChecks,
  servers: [
    (value) => isText(value) || (Array.isArray(value) && value.length > 0 && value.every(isText)),
    "nats://host:4222, or a list of such addresses",
  ],
  role: [(value) => roles.includes(value as Role), roles.map((role) => `"${role}"`).join(", ")],
  // A wrong one is an error of its own.
  prefix: optionChecks.any,
  waitMs: number,
  times: [isObject, `{ ${Object.keys(timeChecks).join(", ")} }`, timeChecks],
  bounds: [isObject, `{ ${Object.keys(boundChecks).join(", ")} }`, boundChecks],
  credsFile: text,
  nkeyFile: text,
  caFile: text,
  certFile: text,
  keyFile: text,
  connectMs: number,
};

/**
 * A bus over NATS with JetStream. It waits for an unreachable server: calls meanwhile reject or wait, and jobs go on.
 * @throws ConfigError for an unknown or wrong option, and "config/unreadable" for a file of secrets; ClusterError
 * "cluster/unreachable", "cluster/refused", "cluster/tls", "cluster/no-bus" when no coordinator created it in time, or
 * "cluster/protocol" when another version did.
 */
export async function openNatsBus(options: NatsBusOptions): Promise<ClusterBus> {
  checkOptions("openNatsBus", options, natsChecks);
  return toClusterBus(openBus(await openNatsStore(options), options), nameServers(options.servers));
}
