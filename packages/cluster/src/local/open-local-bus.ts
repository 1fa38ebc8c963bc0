import { type ChecksOf, checkOptions } from "@cria/core/internal";
import { busChecks } from "../bus/bus-checks.js";
import type { BusOptions } from "../bus/job-bus.js";
import { openBus } from "../bus/open-bus.js";
import { type ClusterBus, toClusterBus } from "../cluster-bus.js";
import { connectLocally, LocalHub } from "./local-store.js";

export interface LocalBusOptions extends BusOptions {
  /** The shared hub: buses over one hub see each other as machines would. Default: a new hub. */
  hub?: LocalHub;
}

const localChecks: ChecksOf<Required<LocalBusOptions>> = {
  ...busChecks,
  hub: [(value) => value instanceof LocalHub, "new LocalHub()"],
};

/** A bus inside this process: no server, nothing on disk. @throws ConfigError for an unknown or wrong option. */
export function openLocalBus(given: LocalBusOptions = {}): ClusterBus {
  checkOptions("openLocalBus", given, localChecks);
  const { hub = new LocalHub(), ...options } = given;
  return toClusterBus(openBus(connectLocally(hub), options), "in process");
}
