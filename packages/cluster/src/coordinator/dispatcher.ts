import { type JobKindName, jobKindNames, type WorkerInfo } from "../bus/job-bus.js";
import { RecentTimes } from "./recent-times.js";

/** Reason why work that was given away returns: all workers that could do it have left. */
export class TakenBack extends Error {}

/** Throw it from `away` to have the work done here, because no worker can do it. */
export class DoItHere extends Error {}

/** Reason of an aborted signal: another attempt at the work finished first. */
export class Overtaken extends Error {}

/** Work is overdue after this multiple of the median duration. */
const LONG = 3;

export interface Work<T> {
  kind: JobKindName;
  /** Priority among waiting work: the smallest goes first; default 0. */
  order?: number;
  here: () => Promise<T>;
  /** Does it here although a worker has it. Ends soon after the signal is aborted. */
  copy: (signal: AbortSignal) => Promise<T>;
  /**
   * Gives it to a worker; may be called a second time while it runs, for another worker. Rejects with the signal's
   * reason when that aborts.
   */
  away: (signal: AbortSignal) => Promise<T>;
}

/** Submitted work. */
interface Task {
  work: Work<unknown>;
  isOver: boolean;
  /** Attempts in progress. */
  readonly attempts: Set<AbortController>;
  /** Start of the last attempt. */
  begunAt: number;
  isCopied: boolean;
  /** Resolves when its copy here has ended. */
  copying: Promise<void>;
  end(outcome: { value: unknown } | { error: unknown }): void;
}

/** State of one kind of work, kept so that a task that comes or ends needs no search among tasks or workers. */
class Lane {
  readonly waiting: Task[] = [];
  /** Tasks that came back and must be done here. */
  readonly own: Task[] = [];
  /** Tasks that only workers are doing, in the order of their last attempt. */
  readonly away = new Set<Task>();
  readonly times = new RecentTimes();
  busyHere = 0;
  busyAway = 0;
  /** Jobs that present workers take at once, and the number of these workers. */
  slotsAway = 0;
  able = 0;
  /** True if tasks given away may still be finished: draining workers finish theirs. */
  canBeDone = false;
}

export interface DispatcherOptions {
  /** True if this process works alongside its workers; without workers it always does. */
  takesPart: boolean;
  /** Conversations that this process holds at once without workers. */
  conversationsHere: number;
  /** True if a worker may do jobs of a kind. Only `setWorkers` asks. */
  mayDo: (worker: WorkerInfo, kind: JobKindName) => boolean;
  /** Milliseconds that any work may take before a second copy begins. */
  patienceMs: number;
  /** Called with each second copy. */
  onCopy?: () => void;
  /** Milliseconds on a clock that only grows. */
  now?: () => number;
}

/**
 * Places each piece of work: with the side that has the smaller share of its slots in use, this process or the workers
 * together. Work waits while no side has a free slot. Overdue work is given out a second time once there are slots that
 * no work waits for: to another worker, and if that does not help to this process; the first result counts. Placement
 * ignores the content of the work; results are identical wherever it runs.
 */
export class Dispatcher {
  private readonly lanes = Object.fromEntries(jobKindNames.map((kind) => [kind, new Lane()])) as Record<
    JobKindName,
    Lane
  >;
  private readonly now: () => number;

  constructor(private readonly options: DispatcherOptions) {
    this.now = options.now ?? (() => performance.now());
  }

  /** Work that waits for a slot. */
  get waiting(): number {
    return Object.values(this.lanes).reduce((sum, { waiting, own }) => sum + waiting.length + own.length, 0);
  }

  /** Sets the present workers. Work of workers that left comes back once no worker can do it. */
  setWorkers(workers: readonly WorkerInfo[]): void {
    for (const kind of jobKindNames) {
      const lane = this.lanes[kind];
      const all = workers.filter((worker) => (worker.slots[kind] ?? 0) > 0 && this.options.mayDo(worker, kind));
      const able = all.filter(({ draining }) => !draining);
      lane.able = able.length;
      lane.slotsAway = able.reduce((sum, { slots }) => sum + slots[kind]!, 0);
      lane.canBeDone = all.length > 0;
      if (!lane.canBeDone) for (const task of lane.away) abort(task, new TakenBack("its workers left"));
      this.pump(kind);
    }
    this.look();
  }

  /** Starts a second copy of overdue work where there is a free slot. Called now and then. */
  look(): void {
    for (const kind of jobKindNames) this.lookAt(kind);
  }

  run<T>(work: Work<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const task: Task = {
        work,
        isOver: false,
        attempts: new Set(),
        begunAt: 0,
        isCopied: false,
        copying: Promise.resolve(),
        end(outcome) {
          if (task.isOver) return;
          task.isOver = true;
          abort(task, new Overtaken("another was first"));
          // Work in this process must not outlive the step.
          if ("value" in outcome) void task.copying.then(() => resolve(outcome.value as T));
          else void task.copying.then(() => reject(outcome.error));
        },
      };
      const { waiting } = this.lanes[work.kind];
      waiting.splice(waiting.findLastIndex((other) => orderOf(other) <= orderOf(task)) + 1, 0, task);
      this.pump(work.kind);
    });
  }

  private pump(kind: JobKindName): void {
    const lane = this.lanes[kind];
    while (lane.own.length > 0 && lane.busyHere < this.most(kind)) void this.begin(lane.own.shift()!, "here");
    while (lane.waiting.length > 0) {
      const place = this.choose(kind);
      if (place === null) return;
      void this.begin(lane.waiting.shift()!, place);
    }
  }

  private choose(kind: JobKindName): "here" | "away" | null {
    const { busyHere, busyAway, slotsAway } = this.lanes[kind];
    const here = this.slotsHere(kind);
    if (busyAway >= slotsAway) return busyHere < here ? "here" : null;
    return busyHere < here && busyHere / here <= busyAway / slotsAway ? "here" : "away";
  }

  /** Jobs that this process runs at once without workers. */
  private most(kind: JobKindName): number {
    return kind === "rollout" ? this.options.conversationsHere : 1;
  }

  private slotsHere(kind: JobKindName): number {
    const { slotsAway, able } = this.lanes[kind];
    if (slotsAway === 0) return this.most(kind);
    if (!this.options.takesPart) return 0;
    // At most as many as an average worker: this process has no more cores than they have.
    return Math.min(this.most(kind), Math.max(1, Math.round(slotsAway / able)));
  }

  /** Runs one attempt. Never rejects. */
  private async begin(task: Task, place: "here" | "away" | "copy"): Promise<void> {
    const { work } = task;
    const lane = this.lanes[work.kind];
    const attempt = new AbortController();
    task.attempts.add(attempt);
    task.begunAt = this.now();
    lane.away.delete(task);
    if (place === "away") lane.away.add(task);
    lane[place === "away" ? "busyAway" : "busyHere"]++;
    try {
      const { begunAt } = task;
      const value = await (place === "here" ? work.here() : work[place](attempt.signal));
      if (!task.isOver) lane.times.add(this.now() - begunAt);
      // A copy that ends the task must not wait for itself.
      if (place === "copy") task.copying = Promise.resolve();
      task.attempts.delete(attempt);
      task.end({ value });
    } catch (error) {
      task.attempts.delete(attempt);
      this.fail(task, place, error);
    }
    if (task.isOver || task.attempts.size === 0) lane.away.delete(task);
    lane[place === "away" ? "busyAway" : "busyHere"]--;
    this.pump(work.kind);
    this.lookAt(work.kind);
  }

  private fail(task: Task, place: "here" | "away" | "copy", error: unknown): void {
    // Another attempt may succeed; one in this process is final.
    if (task.isOver || (place === "away" && task.attempts.size > 0)) return;
    if (place === "copy") task.copying = Promise.resolve();
    if (place === "away" && (error instanceof TakenBack || error instanceof DoItHere))
      this.lanes[task.work.kind].own.push(task);
    else task.end({ error });
  }

  private lookAt(kind: JobKindName): void {
    const lane = this.lanes[kind];
    for (const task of lane.away) {
      const age = this.now() - task.begunAt;
      if (age < this.options.patienceMs || age < LONG * (lane.times.median() ?? this.options.patienceMs)) return;
      if (!this.copy(task)) return;
    }
  }

  /**
   * Starts a copy in a slot that no other work waits for.
   * @returns true if there was one.
   */
  private copy(task: Task): boolean {
    const { kind } = task.work;
    const lane = this.lanes[kind];
    if (!task.isCopied && lane.able > 1) {
      if (lane.busyAway >= lane.slotsAway) return false;
      task.isCopied = true;
      void this.begin(task, "away");
    } else {
      if (lane.busyHere >= this.most(kind)) return false;
      task.copying = this.begin(task, "copy");
    }
    this.options.onCopy?.();
    return true;
  }
}

const orderOf = ({ work: { order = 0 } }: Task) => order;

function abort({ attempts }: Task, reason: Error): void {
  for (const attempt of attempts) attempt.abort(reason);
}
