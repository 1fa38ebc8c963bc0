import { setMaxListeners } from "node:events";
import type { JobBus } from "../bus/job-bus.js";

export interface SurvivalOptions {
  /** Forgets what the bus had. */
  lose: () => void;
  /** Puts there again what workers need before they take jobs. */
  renew: () => Promise<void>;
  signal: AbortSignal;
}

export interface Survival {
  /** How often the bus lost what it had. */
  readonly losses: number;
  /**
   * Does work over the bus, and begins it anew, once the bus has what workers need, each time that the bus lost what it had stored.
   * @param work rejects with the signal's reason when it aborts.
   * @throws what `work` throws; what `renew` throws; ClusterError when the bus cannot be set up anew.
   */
  repeat<T>(work: (lost: AbortSignal) => Promise<T>): Promise<T>;
}

/** Carries a run over a server that loses what it has stored. */
export function surviveLosses(bus: Pick<JobBus, "watchLosses">, { lose, renew, signal }: SurvivalOptions): Survival {
  let losses = 0;
  let loss = makeLoss();
  let ready = Promise.resolve();
  bus.watchLosses(({ problem, restored }) => {
    losses++;
    const before = loss;
    loss = makeLoss();
    lose();
    ready = restored.then(renew);
    // Whoever works hears of it.
    ready.catch(() => undefined);
    before.abort(problem);
  }, signal);
  return {
    get losses() {
      return losses;
    },
    async repeat(work) {
      for (;;) {
        await ready;
        const { signal: lost } = loss;
        try {
          return await work(lost);
        } catch (error) {
          if (!lost.aborted || error !== lost.reason) throw error;
        }
      }
    },
  };
}

function makeLoss(): AbortController {
  const loss = new AbortController();
  // Every job listens.
  setMaxListeners(0, loss.signal);
  return loss;
}
