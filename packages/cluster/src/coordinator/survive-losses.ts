import { setMaxListeners } from "node:events";
import type { JobBus } from "../bus/job-bus.js";

export interface SurvivalOptions {
  /** Forgets the bus's data. */
  lose: () => void;
  /** Stores again everything that workers need before they take jobs. */
  renew: () => Promise<void>;
  signal: AbortSignal;
}

export interface Survival {
  /** Number of times that the bus lost its data. */
  readonly losses: number;
  /**
   * Does work over the bus, and begins it again after each loss of the bus's data, once the bus has everything that
   * workers need.
   * @param work rejects with the signal's reason when it aborts.
   * @throws the errors of `work` and `renew`; ClusterError when the bus cannot be set up again.
   */
  repeat<T>(work: (lost: AbortSignal) => Promise<T>): Promise<T>;
}

/** Carries a run over losses of the server's data. */
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
    // Work that waits for it gets the error.
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
  // Every job adds a listener.
  setMaxListeners(0, loss.signal);
  return loss;
}
