import type { BusTimes } from "../../bus/job-bus.js";
import { NatsServer, smallBounds } from "../nats-process.js";
import { Network } from "./namespaces.js";
import type { PeerOptions } from "./peer.js";
import { Peer } from "./peers.js";

/** Hosts of a training: the server, a coordinator and workers, each in a separate namespace. */
export class TrainingNetwork {
  readonly network = new Network();
  readonly server: NatsServer;
  readonly #times: Partial<BusTimes>;
  readonly #peers: Peer[] = [];

  constructor(times: Partial<BusTimes> = {}) {
    this.#times = times;
    const address = this.network.add("server");
    this.server = new NatsServer({ on: this.network.on("server"), address });
  }

  /** Starts a process on a new host. */
  begin(host: string, options: Omit<PeerOptions, "id" | "servers">): Peer {
    this.network.add(host);
    const { url: servers } = this.server;
    // Room for as many jobs as may be outstanding.
    const bounds = { ...smallBounds, jobBytes: 2 ** 30 };
    const own = { id: host, servers, times: this.#times, bounds };
    const peer = new Peer(this.network.on(host), { ...own, ...options });
    this.#peers.push(peer);
    return peer;
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#peers.map((peer) => peer.kill()));
    await this.server.dispose();
    this.network.dispose();
  }
}

/**
 * Checks the invariants under any network faults: each job has one result, and it is right.
 * @returns the violations, one a line.
 */
export function findFaults(coordinator: Peer, jobs: number): string[] {
  const faults: string[] = [];
  const results = coordinator.of("result");
  for (const { row, answer } of results) if (answer !== 2 * row) faults.push(`job ${row}: ${answer} is wrong`);
  const counts = new Map<number, number>();
  for (const { row } of results) counts.set(row, (counts.get(row) ?? 0) + 1);
  for (let row = 0; row < jobs; row++)
    if (counts.get(row) !== 1) faults.push(`job ${row}: ${counts.get(row) ?? 0} results`);
  for (const { row, error } of coordinator.of("failed")) faults.push(`job ${row}: ${error}`);
  const { stats } = coordinator.of("end").at(-1) ?? {};
  const expected = { submitted: jobs, done: jobs, failed: 0, outstanding: 0, waiting: 0, conflicts: 0 };
  for (const [name, count] of Object.entries(expected))
    if (stats?.[name] !== count) faults.push(`stats.${name}: ${stats?.[name]}, expected ${count}`);
  return faults;
}
