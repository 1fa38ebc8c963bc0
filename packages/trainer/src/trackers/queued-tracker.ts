import { type Generation, GenerationsError } from "./generation.js";
import type { RunStatus, TrackedRun, TrackedStep, Tracker } from "./tracker.js";

export interface QueueOptions {
  /** Maximum number of waiting steps; beyond it the oldest are dropped. */
  capacity: number;
  /** Time limit of one call of the tracker, in milliseconds. */
  timeoutMs: number;
  /** Milliseconds that `finish` waits at most for the rest. */
  finishMs: number;
  /** Maximum number of steps in one call. */
  batch: number;
}

const DEFAULTS: QueueOptions = { capacity: 1000, timeoutMs: 15_000, finishMs: 20_000, batch: 50 };

/**
 * A bounded queue between training and a tracker. `log` only adds to the queue. A tracker that fails or hangs loses
 * only metrics, and causes one warning.
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
   * @param save stores the result of the tracker's `start` for a resumed run.
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

  /** Sends the rest of the queue within a time limit, and reports the number of lost steps. */
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
    // In the same turn as the last look at the queue, so that no step is missed in between.
    this.pumping = null;
  }

  private async attempt(
    work: (signal: AbortSignal) => Promise<void>,
    timeoutMs = this.options.timeoutMs,
  ): Promise<boolean> {
    const controller = new AbortController();
    try {
      // Raced, because a tracker that ignores its signal must not block the queue forever.
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

/** `fetch failed` is uninformative; its cause is not. */
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
