import { type Generation, GenerationsError } from "./generation.js";
import type { RunStatus, TrackedRun, TrackedStep, Tracker } from "./tracker.js";

export interface QueueOptions {
  /** Most steps that wait; beyond it the oldest are dropped. */
  capacity: number;
  /** Most milliseconds that one call of the tracker takes. */
  timeoutMs: number;
  /** Most milliseconds that `finish` waits for all that is left. */
  finishMs: number;
  /** Most steps in one call. */
  batch: number;
}

const DEFAULTS: QueueOptions = { capacity: 1000, timeoutMs: 15_000, finishMs: 20_000, batch: 50 };

/**
 * Stands between training and a tracker. `log` only puts into a bounded queue. A tracker that fails or hangs loses
 * metrics and nothing else, and causes one warning.
 */
export class QueuedTracker {
  private readonly options: QueueOptions;
  private readonly queue: TrackedStep[] = [];
  private readonly started: Promise<boolean>;
  private pumping: Promise<void> | null = null;
  private warned = false;
  private lost = 0;

  /**
   * @param warn called once, when the tracker first fails.
   * @param save keeps what the tracker's `start` returned, for a resumed run.
   */
  constructor(
    readonly tracker: Tracker,
    run: TrackedRun,
    private readonly warn: (text: string) => void,
    save: (value: unknown) => void | Promise<void> = () => undefined,
    options: Partial<QueueOptions> = {},
  ) {
    this.options = { ...DEFAULTS, ...options };
    this.started = this.attempt(async (signal) => save(await tracker.start(run, signal)));
  }

  /** Returns at once, and never throws. */
  log(step: number, metrics: Readonly<Record<string, number>>, generations?: readonly Generation[]): void {
    const finite = Object.fromEntries(Object.entries(metrics).filter(([, value]) => Number.isFinite(value)));
    this.queue.push({ step, time: Date.now(), metrics: finite, ...(generations?.length ? { generations } : {}) });
    if (this.queue.length > this.options.capacity) {
      this.queue.shift();
      this.lost++;
    }
    this.pumping ??= this.pump();
  }

  /** Sends what is in the queue, within a time limit, and reports how much was lost. */
  async finish(status: RunStatus): Promise<void> {
    const deadline = Date.now() + this.options.finishMs;
    const left = () => Math.max(1, deadline - Date.now());
    while (this.pumping && Date.now() < deadline) await withTimeout(this.pumping, left()).catch(() => undefined);
    this.lost += this.queue.length;
    this.queue.length = 0;
    if (await withTimeout(this.started, left()).catch(() => false))
      await this.attempt((signal) => this.tracker.finish(status, signal), left());
    if (this.lost > 0) this.warn(`tracker ${this.tracker.name}: ${this.lost} steps did not reach it`);
  }

  private async pump(): Promise<void> {
    const started = await this.started;
    while (this.queue.length > 0) {
      const steps = this.queue.splice(0, this.options.batch);
      if (!started || !(await this.attempt((signal) => this.tracker.log(steps, signal)))) this.lost += steps.length;
    }
    // In the same turn as the last look at the queue: no step can slip between.
    this.pumping = null;
  }

  private async attempt(
    work: (signal: AbortSignal) => Promise<void>,
    timeoutMs = this.options.timeoutMs,
  ): Promise<boolean> {
    const controller = new AbortController();
    try {
      // Raced, too: a tracker that ignores its signal must not hold the queue for ever.
      await withTimeout(work(controller.signal), Math.min(timeoutMs, this.options.timeoutMs));
      return true;
    } catch (error) {
      controller.abort(error);
      if (!this.warned)
        this.warn(`tracker ${this.tracker.name} fails, training goes on without it: ${describe(error)}`);
      this.warned = true;
      return error instanceof GenerationsError;
    }
  }
}

/** `fetch failed` says nothing; its cause does. */
function describe(error: unknown): string {
  const { message, cause } = error as Error & { cause?: Error & { code?: string } };
  return cause ? `${message}: ${cause.message || cause.code}` : message;
}

function withTimeout<T>(work: Promise<T>, ms: number): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${(ms / 1000).toFixed(1)} s`)), ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
