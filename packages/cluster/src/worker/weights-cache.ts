import type { Blobs } from "../bus/job-bus.js";

/** The current weights, and those of the step before. */
const KEPT = 2;

/** Weights from the bus, with the newest in memory. Jobs that wait for the same weights share a fetch. */
export class WeightsCache {
  private readonly kept = new Map<string, Promise<Uint8Array>>();

  constructor(private readonly blobs: Pick<Blobs, "get">) {}

  /** @throws ClusterError of `blobs.get`; the next call tries again. */
  get(sha: string): Promise<Uint8Array> {
    const found = this.kept.get(sha) ?? this.blobs.get(sha);
    // Moves it to the end.
    this.kept.delete(sha);
    this.kept.set(sha, found);
    for (const old of [...this.kept.keys()].slice(0, -KEPT)) this.kept.delete(old);
    found.catch(() => this.kept.get(sha) === found && this.kept.delete(sha));
    return found;
  }

  /** Begins to fetch weights that jobs will need. */
  prefetch(sha: string): void {
    this.get(sha).catch(() => undefined);
  }
}
