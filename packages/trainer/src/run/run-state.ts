import { type Checkpoint, restoreEngines, type Unvalidated } from "../checkpoints/checkpoint-store.js";
import type { StepResult } from "../step/training-step.js";
import { type DealtRows, PassesOverRows, type RowOrder } from "./row-order.js";
import { SampledOrder } from "./sampled-order.js";
import type { Session } from "./session.js";

/** A checkpoint's data.json, beside what the order of rows has in it. */
interface RunStateData extends Unvalidated, Record<string, unknown> {
  kl_controller: { coefficient: number };
}

/** What changes from step to step beside the engines. */
export interface RunPlace {
  /** Steps done. */
  step: number;
  /** What a checkpoint holds of the order of rows. */
  saveRows: () => Record<string, unknown>;
  klController: { coefficient: number };
}

/** All of a training that changes from step to step: what a checkpoint holds. */
export class RunState {
  private readonly rows: RowOrder;

  constructor(private readonly session: Session) {
    const { rowSampler } = session;
    this.rows = rowSampler ? new SampledOrder(session, rowSampler) : new PassesOverRows(session);
  }

  /**
   * Goes to where a checkpoint was made.
   * @returns the metrics of its step where the validation after it was interrupted.
   * @throws DataError or EngineError
   */
  async restore(checkpoint: Checkpoint): Promise<Unvalidated["unvalidated"]> {
    const data = checkpoint.data as RunStateData | null;
    if (!data) return undefined;
    this.rows.restore(data);
    this.session.klController.restore(data.kl_controller);
    await restoreEngines(checkpoint, listEngines(this.session));
    return data.unvalidated;
  }

  /** Rows of a step: steps are dealt in their order, ahead of being learned from where the training has a lag. */
  deal(step: number): DealtRows {
    return this.rows.deal(step);
  }

  /** A step was learned from: what it came to, for later ones. */
  learn(step: number, result: Pick<StepResult, "trajectories" | "leftOut">): void {
    this.rows.learn(step, result);
  }

  /** The place when `step` steps are done, the last one just now. */
  mark(step: number): RunPlace {
    return { step, saveRows: this.rows.mark(step), klController: this.session.klController.save() };
  }

  /** The parts of a checkpoint, made at a place of this training. */
  describe({ step, saveRows, klController }: RunPlace) {
    const { settings } = this.session;
    const data: RunStateData = { ...saveRows(), kl_controller: klController };
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
