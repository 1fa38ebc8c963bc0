import type { JobKindName, WorkerInfo } from "../bus/job-bus.js";

/** Why work that was given away is done here after all: those who could do it have left. */
export class TakenBack extends Error {}

/** Throw it from `away` to have the work done here: nobody else can. */
export class DoItHere extends Error {}

export interface Work<T> {
  kind: JobKindName;
  here: () => Promise<T>;
  /** Gives it to a worker. Rejects with the signal's reason when that aborts. */
  away: (signal: AbortSignal) => Promise<T>;
}

interface Waiting {
  kind: JobKindName;
  /** Only here: it was given away before, and came back. */
  isOwn: boolean;
  begin: (isAway: boolean) => Promise<void>;
}

export interface DispatcherOptions {
  /** Whether this process works beside its workers; without any it does so in each case. */
  takesPart: boolean;
  /** Conversations that this process holds at once where nobody else does. */
  conversationsHere: number;
  /** Whether a worker may do jobs of a kind. */
  mayDo: (worker: WorkerInfo, kind: JobKindName) => boolean;
}

/**
 * Decides where each piece of work is done: by who has the smaller share of its slots in use, this process or the workers
 * together. Where nobody has a free slot it waits. Nothing is decided by what the work is: any choice gives the same bits.
 */
export class Dispatcher {
  private workers: readonly WorkerInfo[] = [];
  private readonly queue: Waiting[] = [];
  private readonly busyHere = { rollout: 0, score: 0, gradient: 0 };
  private readonly busyAway = { rollout: new Set<AbortController>(), score: new Set(), gradient: new Set() } as Record<
    JobKindName,
    Set<AbortController>
  >;

  constructor(private readonly options: DispatcherOptions) {}

  /** Work that waits for a slot. */
  get waiting(): number {
    return this.queue.length;
  }

  /** How many jobs of a kind the workers that are there can do at once. */
  slotsAway(kind: JobKindName): number {
    return this.workers
      .filter((worker) => !worker.draining && this.options.mayDo(worker, kind))
      .reduce((sum, { slots }) => sum + (slots[kind] ?? 0), 0);
  }

  /** Says who is there. What was given to those who left comes back once nobody else can do it. */
  setWorkers(workers: readonly WorkerInfo[]): void {
    this.workers = workers;
    for (const [kind, given] of Object.entries(this.busyAway)) {
      if (given.size === 0 || this.canStillDo(kind as JobKindName)) continue;
      for (const controller of given) controller.abort(new TakenBack("its workers left"));
    }
    this.pump();
  }

  run<T>({ kind, here, away }: Work<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const work: Waiting = {
        kind,
        isOwn: false,
        begin: async (isAway) => {
          try {
            resolve(await (isAway ? this.giveAway(kind, away) : this.doHere(kind, here)));
          } catch (error) {
            if (!isAway || !(error instanceof TakenBack || error instanceof DoItHere)) return reject(error);
            this.queue.unshift({ ...work, isOwn: true });
            this.pump();
          }
        },
      };
      this.queue.push(work);
      this.pump();
    });
  }

  /** Those that drain finish what they have. */
  private canStillDo(kind: JobKindName): boolean {
    return this.workers.some((worker) => (worker.slots[kind] ?? 0) > 0 && this.options.mayDo(worker, kind));
  }

  private async giveAway<T>(kind: JobKindName, away: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    this.busyAway[kind].add(controller);
    try {
      return await away(controller.signal);
    } finally {
      this.busyAway[kind].delete(controller);
      this.pump();
    }
  }

  private async doHere<T>(kind: JobKindName, here: () => Promise<T>): Promise<T> {
    this.busyHere[kind]++;
    try {
      return await here();
    } finally {
      this.busyHere[kind]--;
      this.pump();
    }
  }

  private pump(): void {
    for (let i = 0; i < this.queue.length; ) {
      const place = this.choose(this.queue[i]!);
      if (place === null) i++;
      else void this.queue.splice(i, 1)[0]!.begin(place === "away");
    }
  }

  private choose({ kind, isOwn }: Waiting): "here" | "away" | null {
    const away = isOwn ? 0 : this.slotsAway(kind);
    const here = this.slotsHere(kind, isOwn || this.slotsAway(kind) === 0);
    const usedAway = this.busyAway[kind].size;
    const usedHere = this.busyHere[kind];
    if (usedAway >= away) return usedHere < here ? "here" : null;
    return usedHere < here && usedHere / here <= usedAway / away ? "here" : "away";
  }

  private slotsHere(kind: JobKindName, isAlone: boolean): number {
    if (isAlone) return kind === "rollout" ? this.options.conversationsHere : 1;
    if (!this.options.takesPart) return 0;
    if (kind !== "rollout") return 1;
    // As one of them: it has no more cores than they have.
    const able = this.workers.filter((worker) => this.options.mayDo(worker, kind) && (worker.slots[kind] ?? 0) > 0);
    return Math.min(this.options.conversationsHere, Math.max(1, Math.round(this.slotsAway(kind) / able.length)));
  }
}
