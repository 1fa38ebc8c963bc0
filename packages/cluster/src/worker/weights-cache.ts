import type { Blobs } from "../bus/job-bus.js";

/** The weights of now, and those of the step before. */
const KEPT = 2;

/** Weights from the bus, the newest in memory. What several jobs wait for is fetched once. */
export class WeightsCache {
  private readonly kept = new Map<string, Promise<Uint8Array>>();

  constructor(private readonly blobs: Pick<Blobs, "get">) {}

  /** @throws ClusterError of `blobs.get`; then it may be asked for again. */
  get(sha: string): Promise<Uint8Array> {
    const found = this.kept.get(sha) ?? this.blobs.get(sha);
    // The newest last.
    this.kept.delete(sha);
    this.kept.set(sha, found);
    for (const old of [...this.kept.keys()].slice(0, -KEPT)) this.kept.delete(old);
    found.catch(() => this.kept.get(sha) === found && this.kept.delete(sha));
    return found;
  }

  /** Begins to fetch what will be asked for. */
  prefetch(sha: string): void {
    this.get(sha).catch(() => undefined);
  }
}
