/** Reason of stopped work: a job with newer weights has come. */
export class Superseded extends Error {}

export interface WeightsOfJob {
  /** SHA-256. */
  weights: string;
  /** Optimizer steps of these weights. */
  version: number;
  signal: AbortSignal;
}

export interface WeightsSource {
  /** @throws Error when they are unavailable; the engine keeps its weights. */
  fetch(weights: string): Promise<Uint8Array>;
  /** Writes them into the engine, which is idle. */
  write(bytes: Uint8Array): Promise<void>;
}

interface Waiting extends Omit<WeightsOfJob, "signal"> {
  admit: () => void;
  reject: (error: unknown) => void;
}

/**
 * One engine for jobs of several weights: jobs of equal weights use it together, others wait until these are over.
 * Newer weights do not wait: work with older ones is stopped, because its results are no longer needed.
 */
export class WeightsLock {
  /** The engine's weights; null: unknown. */
  private held: string | null = null;
  private version = -1;
  private isLoading = false;
  private readonly users = new Set<AbortController>();
  private waiting: Waiting[] = [];

  constructor(private readonly source: WeightsSource) {}

  /** True if no job uses the engine or waits for it. */
  get isIdle(): boolean {
    return this.users.size === 0 && this.waiting.length === 0 && !this.isLoading;
  }

  /**
   * Works while the engine has the weights.
   * @param work gets a signal that tells it to stop.
   * @throws Superseded when the work was stopped for newer weights; the errors of `fetch`, `write` and `work`; the
   * signal's reason.
   */
  async use<T>(job: WeightsOfJob, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const user = await this.admit(job);
    try {
      return await work(AbortSignal.any([job.signal, user.signal]));
    } catch (error) {
      job.signal.throwIfAborted();
      throw user.signal.aborted ? user.signal.reason : error;
    } finally {
      this.users.delete(user);
      this.next();
    }
  }

  private async admit({ weights, version, signal }: WeightsOfJob): Promise<AbortController> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.waiting = this.waiting.filter((other) => other !== entry);
        signal.removeEventListener("abort", abort);
      };
      const abort = () => {
        leave();
        reject(signal.reason);
        this.next();
      };
      const entry: Waiting = {
        weights,
        version,
        admit: () => {
          leave();
          // Counts at once: otherwise other weights might be loaded meanwhile.
          const user = new AbortController();
          this.users.add(user);
          resolve(user);
        },
        reject: (error) => {
          leave();
          reject(error);
        },
      };
      signal.addEventListener("abort", abort);
      this.waiting.push(entry);
      this.next();
    });
  }

  private next(): void {
    if (this.isLoading || this.waiting.length === 0) return;
    // Among equal versions the first: later jobs with the loaded weights must not overtake it.
    const first = this.waiting.reduce((best, other) => (other.version > best.version ? other : best));
    if (first.weights === this.held) this.enter(first.weights, first.version);
    else if (this.users.size === 0) void this.load(first.weights, first.version);
    else if (first.version > this.version)
      for (const user of this.users)
        user.abort(new Superseded(`superseded by version ${first.version} of the weights`));
  }

  private enter(weights: string, version: number): void {
    this.version = Math.max(this.version, version);
    for (const entry of this.waiting.filter((other) => other.weights === weights)) entry.admit();
  }

  private async load(weights: string, version: number): Promise<void> {
    this.isLoading = true;
    try {
      const bytes = await this.source.fetch(weights);
      this.held = null;
      await this.source.write(bytes);
      this.held = weights;
      this.version = version;
    } catch (error) {
      for (const entry of this.waiting.filter((other) => other.weights === weights)) entry.reject(error);
    } finally {
      this.isLoading = false;
      this.next();
    }
  }
}
