import type { Leadership } from "@cria/trainer";
import type { JobBus, Lease } from "../bus/job-bus.js";

/** Takes a bus's lease and remembers it. */
export class Leader {
  private lease: Lease | undefined;

  constructor(private readonly bus: JobBus) {}

  /** 0 before the lease is requested. */
  get term(): number {
    return this.lease?.term ?? 0;
  }

  /** @throws ClusterError "cluster/lease-lost" when it was lost. */
  check(): void {
    this.lease?.signal.throwIfAborted();
  }

  async lead(holder: string, signal?: AbortSignal, onWait?: (reason: string) => void): Promise<Leadership> {
    this.lease = await this.bus.acquireLease(holder, signal, onWait);
    return this.lease;
  }
}
