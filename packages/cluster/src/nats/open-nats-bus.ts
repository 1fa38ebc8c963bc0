import type { BusOptions } from "../bus/job-bus.js";
import { openBus } from "../bus/open-bus.js";
import { type ClusterBus, toClusterBus } from "../cluster-bus.js";
import { nameServers } from "./connect-nats.js";
import { type NatsStoreOptions, openNatsStore } from "./open-nats-store.js";

export interface NatsBusOptions extends NatsStoreOptions, BusOptions {}

/**
 * A bus over NATS with JetStream. It waits for an unreachable server: calls meanwhile reject or wait, and jobs go on.
 * @throws ConfigError "config/unreadable" for a file of secrets; ClusterError "cluster/unreachable", "cluster/refused",
 * "cluster/tls", "cluster/no-bus" when no coordinator created it in time, or "cluster/protocol" when another version
 * did.
 */
export async function openNatsBus(options: NatsBusOptions): Promise<ClusterBus> {
  return toClusterBus(openBus(await openNatsStore(options), options), nameServers(options.servers));
}
