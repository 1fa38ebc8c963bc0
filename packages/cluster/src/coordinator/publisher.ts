import type { JobBus, PublishedPolicy } from "../bus/job-bus.js";
import { readWeights, type WeightsEngine } from "../jobs/weights.js";

/** Sends the weights to the bus after each change. */
export class Publisher {
  /** SHA-256 of the weights for new jobs. */
  weights = "";
  /** Optimizer steps so far. */
  version = 0;
  bytes = 0;
  /** Duration of the last transfer, and all bytes so far. */
  seconds = 0;
  sent = 0;
  private seen: PublishedPolicy | undefined;
  /** Bytes of `weights`. */
  private newest: Uint8Array | undefined;
  private isFirst = true;
  private last: Promise<void> = Promise.resolve();

  constructor(
    private readonly bus: JobBus,
    private readonly engine: WeightsEngine,
    private readonly run: {
      /** SHA-256 of its description. */
      sha: string;
      /** SHA-256 of the initial weights, which are never deleted. */
      weights: string;
    },
  ) {}

  /** @throws ClusterError "cluster/stale-policy" when another process coordinates by now. */
  publish(): Promise<void> {
    return this.after(() => this.send());
  }

  /**
   * Sends the same weights again, to a bus that lost them. The engine may be in use.
   * @throws as `publish`.
   */
  repeat(): Promise<void> {
    return this.after(() => this.sendAgain());
  }

  /** Runs transfers one after another. */
  private after(work: () => Promise<void>): Promise<void> {
    const done = this.last.then(work);
    this.last = done.catch(() => undefined);
    return done;
  }

  private async send(): Promise<void> {
    const version = this.engine.stepCount;
    if (!this.isFirst && version === this.version) return;
    const started = performance.now();
    const bytes = await readWeights(this.engine);
    const before = this.weights;
    this.weights = await this.bus.blobs.put(bytes);
    if (this.isFirst) this.seen = await this.bus.readPolicy();
    this.seen = await this.bus.publishPolicy({ version, weights: this.weights, run: this.run.sha }, this.seen);
    this.isFirst = false;
    this.newest = bytes;
    this.version = version;
    this.bytes = bytes.byteLength;
    this.seconds = (performance.now() - started) / 1000;
    this.sent += bytes.byteLength;
    // Jobs with the old weights are over.
    if (![this.weights, this.run.weights, ""].includes(before))
      await this.bus.blobs.delete(before).catch(() => undefined);
  }

  private async sendAgain(): Promise<void> {
    if (!this.newest) return;
    await this.bus.blobs.put(this.newest);
    const { version, weights, run } = this;
    this.seen = await this.bus.publishPolicy({ version, weights, run: run.sha }, this.seen);
    this.sent += this.newest.byteLength;
  }
}
