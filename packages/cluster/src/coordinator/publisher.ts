import { createHash } from "node:crypto";
import type { JobBus, PublishedPolicy } from "../bus/job-bus.js";
import { readWeights, type WeightsEngine } from "../jobs/weights.js";

/** Weights on the bus, as jobs name them. */
export interface SentWeights {
  /** SHA-256. */
  weights: string;
  /** Optimizer steps of the live engine when they were first sent. */
  version: number;
}

/** Weights that jobs may still need. */
interface Kept extends SentWeights {
  bytes: Uint8Array;
  /** True if conversations are sampled with them. */
  samples: boolean;
}

/** Sends the weights to the bus after each change, and those of kept versions that sample conversations. */
export class Publisher {
  /** Optimizer steps so far. */
  version = 0;
  bytes = 0;
  /** Duration of the last transfer, and all bytes so far. */
  seconds = 0;
  sent = 0;
  private seen: PublishedPolicy | undefined;
  /** SHA-256 of the live weights; empty before the first are sent. */
  private newest = "";
  /** Weights by SHA-256, in the order in which they were first sent. */
  private readonly kept = new Map<string, Kept>();
  /** The weights of versions, which never change. */
  private readonly versions = new WeakMap<WeightsEngine, SentWeights>();
  private last: Promise<void> = Promise.resolve();

  constructor(
    private readonly bus: JobBus,
    private readonly engine: WeightsEngine,
    private readonly run: {
      /** SHA-256 of its description. */
      sha: string;
      /** SHA-256 of the initial weights, which are never deleted. */
      weights: string;
      /** Number of older weights, besides the live ones, with which conversations may be sampled at the same time. */
      lag: number;
    },
  ) {}

  /** The weights for new scores and gradients. */
  get live(): SentWeights {
    const { weights, version } = this.kept.get(this.newest)!;
    return { weights, version };
  }

  /** @throws ClusterError "cluster/stale-policy" when another process coordinates by now. */
  publish(): Promise<void> {
    return this.after(() => this.send());
  }

  /**
   * The weights with which an engine samples conversations: for the live engine, as published; or those of a kept
   * version. They stay on the bus until `lag` newer ones and the live ones sample.
   */
  keep(engine: WeightsEngine): Promise<SentWeights> {
    return this.after(async () => {
      const known = engine === this.engine ? this.live : this.versions.get(engine);
      const { weights, version } = known ?? (await this.put(await readWeights(engine)));
      if (engine !== this.engine) this.versions.set(engine, { weights, version });
      this.kept.get(weights)!.samples = true;
      await this.forget();
      return { weights, version };
    });
  }

  /**
   * Sends the same weights again, to a bus that lost them. The engine may be in use.
   * @throws as `publish`.
   */
  repeat(): Promise<void> {
    return this.after(() => this.sendAgain());
  }

  /** Runs transfers one after another. */
  private after<T>(work: () => Promise<T>): Promise<T> {
    const done = this.last.then(work);
    this.last = done.then(
      () => undefined,
      () => undefined,
    );
    return done;
  }

  private async send(): Promise<void> {
    const version = this.engine.stepCount;
    const isFirst = this.newest === "";
    if (!isFirst && version === this.version) return;
    const started = performance.now();
    const { weights } = await this.put(await readWeights(this.engine));
    if (isFirst) this.seen = await this.bus.readPolicy();
    this.seen = await this.bus.publishPolicy({ version, weights, run: this.run.sha }, this.seen);
    this.newest = weights;
    this.version = version;
    this.bytes = this.kept.get(weights)!.bytes.byteLength;
    this.seconds = (performance.now() - started) / 1000;
    await this.forget();
  }

  private async put(bytes: Uint8Array): Promise<SentWeights> {
    const known = this.kept.get(createHash("sha256").update(bytes).digest("hex"));
    if (known) return known;
    const kept = { weights: await this.bus.blobs.put(bytes), version: this.engine.stepCount, bytes, samples: false };
    this.kept.set(kept.weights, kept);
    this.sent += bytes.byteLength;
    return kept;
  }

  /** Deletes weights whose jobs are over. */
  private async forget(): Promise<void> {
    const others = [...this.kept.values()].filter(({ weights }) => weights !== this.newest);
    const sampling = others.filter(({ samples }) => samples);
    const needed = new Set(sampling.slice(Math.max(0, sampling.length - this.run.lag)));
    for (const each of others) {
      if (needed.has(each)) continue;
      this.kept.delete(each.weights);
      if (each.weights !== this.run.weights) await this.bus.blobs.delete(each.weights).catch(() => undefined);
    }
  }

  private async sendAgain(): Promise<void> {
    if (this.newest === "") return;
    for (const { bytes } of this.kept.values()) {
      await this.bus.blobs.put(bytes);
      this.sent += bytes.byteLength;
    }
    const { version, newest: weights, run } = this;
    this.seen = await this.bus.publishPolicy({ version, weights, run: run.sha }, this.seen);
  }
}
