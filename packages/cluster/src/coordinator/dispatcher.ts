import { type JobKindName, jobKindNames, type WorkerInfo } from "../bus/job-bus.js";
import { RecentTimes } from "./recent-times.js";

/** Why work that was given away is done here after all: those who could do it have left. */
export class TakenBack extends Error {}

/** Throw it from `away` to have the work done here: nobody else can. */
export class DoItHere extends Error {}

/** Why a signal is aborted: the work is done, by another who was given it as well. */
export class Overtaken extends Error {}

/** Work takes long when it takes so many times what most takes. */
const LONG = 3;

export interface Work<T> {
  kind: JobKindName;
  here: () => Promise<T>;
  /** Does it here although a worker has it. Ends soon after the signal was aborted. */
  copy: (signal: AbortSignal) => Promise<T>;
  /** Gives it to a worker; called once more while it runs, to another. Rejects with the signal's reason when that aborts. */
  away: (signal: AbortSignal) => Promise<T>;
}

/** Work that was handed in. */
interface Task {
  work: Work<unknown>;
  isOver: boolean;
  /** Who is at it now. */
  readonly attempts: Set<AbortController>;
  /** When the last attempt began. */
  begunAt: number;
  isCopied: boolean;
  /** When its copy here has ended. */
  copying: Promise<void>;
  end(outcome: { value: unknown } | { error: unknown }): void;
}

/** All that is to be known of one kind of work: nothing is looked for among tasks or workers when a task comes or ends. */
class Lane {
  readonly waiting: Task[] = [];
  /** Those that came back: only for here. */
  readonly own: Task[] = [];
  /** Those that are away alone, which began first before the others. */
  readonly away = new Set<Task>();
  readonly times = new RecentTimes();
  busyHere = 0;
  busyAway = 0;
  /** How many jobs the workers that are there take at once, and how many workers that is. */
  slotsAway = 0;
  able = 0;
  /** Whether what is away may still be done: those that drain finish what they have. */
  canBeDone = false;
}

export interface DispatcherOptions {
  /** Whether this process works beside its workers; without any it does so in each case. */
  takesPart: boolean;
  /** Conversations that this process holds at once where nobody else does. */
  conversationsHere: number;
  /** Whether a worker may do jobs of a kind. Asked in `setWorkers` alone. */
  mayDo: (worker: WorkerInfo, kind: JobKindName) => boolean;
  /** Milliseconds that any work may take before a second copy of it is begun. */
  patienceMs: number;
  /** Called with each second copy. */
  onCopy?: () => void;
  /** Milliseconds on a clock that only grows. */
  now?: () => number;
}

/**
 * Decides where each piece of work is done: by who has the smaller share of its slots in use, this process or the workers
 * together. Where nobody has a free slot it waits. What takes far longer than the rest is given to another as well, once there are
 * slots that nothing waits for: to another worker, and if that does not help to this process; the first result counts. Nothing is
 * decided by what the work is: any choice gives the same bits.
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

  /** Says who is there. What was given to those who left comes back once nobody else can do it. */
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

  /** Has work that takes too long begun a second time, where there is a slot for it. Asked for now and then. */
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
          // What is computed here must not run on behind the step's back.
          if ("value" in outcome) void task.copying.then(() => resolve(outcome.value as T));
          else void task.copying.then(() => reject(outcome.error));
        },
      };
      this.lanes[work.kind].waiting.push(task);
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

  /** What this process does at once where nobody else does. */
  private most(kind: JobKindName): number {
    return kind === "rollout" ? this.options.conversationsHere : 1;
  }

  private slotsHere(kind: JobKindName): number {
    const { slotsAway, able } = this.lanes[kind];
    if (slotsAway === 0) return this.most(kind);
    if (!this.options.takesPart) return 0;
    // As one of them: it has no more cores than they have.
    return Math.min(this.most(kind), Math.max(1, Math.round(slotsAway / able)));
  }

  /** One who does it. Never rejects. */
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
      // It need not wait for itself.
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
    // Who has it besides may do better; here nobody may.
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

  /** @returns whether there was a slot. Nothing waits for one that is free. */
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

function abort({ attempts }: Task, reason: Error): void {
  for (const attempt of attempts) attempt.abort(reason);
}
