import type { BusOptions } from "../bus/job-bus.js";
import { openBus } from "../bus/open-bus.js";
import { type ClusterBus, toClusterBus } from "../cluster-bus.js";
import { connectLocally, LocalHub } from "./local-store.js";

export interface LocalBusOptions extends BusOptions {
  /** The shared hub: buses over one hub see each other as machines would. Default: a new hub. */
  hub?: LocalHub;
}

/** A bus inside this process: no server, nothing on disk. */
export function openLocalBus({ hub = new LocalHub(), ...options }: LocalBusOptions = {}): ClusterBus {
  return toClusterBus(openBus(connectLocally(hub), options), "in process");
}
