import { DataLoader, type DataLoaderPlace, type DataLoaderState, type DatasetRow } from "@cria/rollout";
import { type Checkpoint, restoreEngines, type Unvalidated } from "../checkpoints/checkpoint-store.js";
import type { Session } from "./session.js";

/** A checkpoint's data.json. */
interface RunStateData extends Unvalidated {
  loader: DataLoaderState;
  kl_controller: { coefficient: number };
}

/** What changes from step to step beside the engines. */
export interface RunPlace {
  /** Steps done. */
  step: number;
  loader: DataLoaderPlace;
  klController: { coefficient: number };
}

/** All of a training that changes from step to step: what a checkpoint holds. */
export class RunState {
  readonly loader: DataLoader<DatasetRow>;

  constructor(private readonly session: Session) {
    const { data } = session.settings;
    this.loader = new DataLoader(session.trainRows, {
      batchSize: Math.min(data.batchSize, session.trainRows.length),
      shuffle: data.shuffle,
      seed: data.seed,
    });
  }

  /**
   * Goes to where a checkpoint was made.
   * @returns the metrics of its step where the validation after it was interrupted.
   * @throws DataError or EngineError
   */
  async restore(checkpoint: Checkpoint): Promise<Unvalidated["unvalidated"]> {
    const data = checkpoint.data as RunStateData | null;
    if (!data) return undefined;
    this.loader.restore(data.loader);
    this.session.klController.restore(data.kl_controller);
    await restoreEngines(checkpoint, listEngines(this.session));
    return data.unvalidated;
  }

  /** The place now, `step` steps being done. */
  mark(step: number): RunPlace {
    return { step, loader: this.loader.place, klController: this.session.klController.save() };
  }

  /** The parts of a checkpoint, made at a place of this training. */
  describe({ step, loader, klController }: RunPlace) {
    const { settings } = this.session;
    const data: RunStateData = { loader: this.loader.save(loader), kl_controller: klController };
    return {
      engines: listEngines(this.session),
      data,
      // No generator runs through a training: every draw is made from a hash of seed, step, row and sample.
      rng: { rollout_seed: settings.seed, data_seed: settings.data.seed, step },
    };
  }
}

/** The engines of a session whose state a checkpoint holds, by name. */
export function listEngines(session: Session): Record<string, object> {
  return { actor: session.policy.engine, ...(session.critic ? { critic: session.critic.engine } : {}) };
}
