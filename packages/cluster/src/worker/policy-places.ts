import type { PolicyVersion } from "@cria/core";
import type { LlamaModel } from "@cria/engine";
import type { JobKindName } from "../bus/job-bus.js";
import { writeWeights } from "../jobs/weights.js";
import { WeightsLock, type WeightsOfJob } from "./weights-lock.js";

/** Something that holds the weights of one policy at a time. */
interface Place {
  lock: WeightsLock;
  /** The engine of its weights, while the lock is held. */
  engine: () => LlamaModel;
  /** The newest weights that it was chosen for; null: none yet. */
  aim: Pick<WeightsOfJob, "weights" | "version"> | null;
  dispose(): Promise<void>;
}

/**
 * The policies that one engine holds for jobs: its live weights and, with a lag, `lag + 1` versions of them.
 * Conversations are held with these versions while scores and gradients are computed with newer weights.
 */
export class PolicyPlaces {
  private readonly live: Place;
  /** Places in which conversations are held; without lag, the live weights. */
  private readonly sampling: readonly Place[];

  /** @param fetch the weights by SHA-256. */
  constructor(engine: LlamaModel, fetch: (weights: string) => Promise<Uint8Array>, { lag }: { lag: number }) {
    const write = (bytes: Uint8Array) => writeWeights(engine, bytes);
    const dispose = () => Promise.resolve();
    this.live = { lock: new WeightsLock({ fetch, write }), engine: () => engine, aim: null, dispose };
    this.sampling = lag > 0 ? Array.from({ length: lag + 1 }, () => makeVersion(engine, fetch)) : [this.live];
  }

  /**
   * Works with the weights of a job, as `WeightsLock.use`.
   * @param work gets an engine that samples by them, and a signal that tells it to stop.
   */
  use<T>(
    kind: JobKindName,
    job: WeightsOfJob,
    work: (engine: LlamaModel, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const place = kind === "rollout" ? this.choose(job) : this.live;
    return place.lock.use(job, (signal) => work(place.engine(), signal));
  }

  /** Frees the versions; nothing may use them any more. Never rejects. */
  async dispose(): Promise<void> {
    // One that is in use is freed with the engine.
    await Promise.allSettled(this.sampling.map((place) => place.dispose()));
  }

  /** The place that has or awaits the weights; else the one of the oldest, preferably one that no job uses. */
  private choose({ weights, version }: WeightsOfJob): Place {
    const found = this.sampling.find(({ aim }) => aim?.weights === weights);
    if (found) return found;
    const age = ({ aim }: Place) => aim?.version ?? -1;
    const idle = this.sampling.filter(({ lock }) => lock.isIdle);
    const oldest = (idle.length > 0 ? idle : this.sampling).reduce((best, place) =>
      age(place) < age(best) ? place : best,
    );
    // Older weights than those in use wait until these are done with, and do not drive them out.
    if (idle.length > 0 || version > age(oldest)) oldest.aim = { weights, version };
    return oldest;
  }
}

function makeVersion(engine: LlamaModel, fetch: (weights: string) => Promise<Uint8Array>): Place {
  let kept: (PolicyVersion & { engine: LlamaModel }) | undefined;
  const write = async (bytes: Uint8Array) => {
    kept ??= await engine.keepVersion();
    await writeWeights(kept.engine, bytes);
  };
  return {
    lock: new WeightsLock({ fetch, write }),
    engine: () => kept!.engine,
    aim: null,
    dispose: async () => kept?.dispose(),
  };
}
