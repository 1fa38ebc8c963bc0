import {
  type Checkpoint,
  restoreEngines,
  type TrainingState,
  type Unvalidated,
} from "../checkpoints/checkpoint-store.js";
import { type KeptGroup, ReplayBuffer } from "../replay-buffer/replay-buffer.js";
import { REPLAY_FILE, readReplayFile, writeReplayFile } from "../replay-buffer/replay-file.js";
import type { StepInputs, StepResult } from "../step/training-step.js";
import { type DealtRows, PassesOverRows, type RowOrder } from "./row-order.js";
import { SampledOrder } from "./sampled-order.js";
import type { Training } from "./training.js";

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
  /** Of the replay buffer; null: there is none. */
  groups: readonly KeptGroup[] | null;
}

/** All of a training that changes from step to step: what a checkpoint holds. */
export class RunState {
  private readonly rows: RowOrder;
  /** null: steps learn from their own groups alone. */
  private readonly buffer: ReplayBuffer | null;

  constructor(private readonly training: Training) {
    const { rowSampler, settings } = training;
    const { replay } = settings.algorithm;
    this.buffer = replay && new ReplayBuffer(replay, settings.seed);
    this.rows = rowSampler ? new SampledOrder(training, rowSampler) : new PassesOverRows(training);
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
    this.buffer?.restore(await readReplayFile(checkpoint.path));
    this.training.klController.restore(data.kl_controller);
    await restoreEngines(checkpoint, listEngines(this.training));
    return data.unvalidated;
  }

  /** Rows of a step: steps are dealt in their order, ahead of being learned from where the training has a lag. */
  deal(step: number): DealtRows {
    return this.rows.deal(step);
  }

  /** Groups of earlier steps that a step learns from too, beside so many of its own. */
  replayFor(step: number): StepInputs["replay"] {
    const { buffer } = this;
    return buffer ? (own) => buffer.draw(step, own) : undefined;
  }

  /** A step was learned from: what it came to, for later ones. */
  learn(step: number, result: Pick<StepResult, "trajectories" | "leftOut" | "advantages">): void {
    this.rows.learn(step, result);
    this.buffer?.add(step, result.trajectories, result.advantages);
  }

  /** The place when `step` steps are done, the last one just now. */
  mark(step: number): RunPlace {
    const { training, buffer } = this;
    return {
      step,
      saveRows: this.rows.mark(step),
      klController: training.klController.save(),
      groups: buffer?.groups ?? null,
    };
  }

  /** The parts of a checkpoint, made at a place of this training. */
  describe({ step, saveRows, klController, groups }: RunPlace) {
    const { settings } = this.training;
    const files: TrainingState["files"] = groups ? { [REPLAY_FILE]: (path) => writeReplayFile(path, groups) } : {};
    const data: RunStateData = { ...saveRows(), kl_controller: klController };
    return {
      engines: listEngines(this.training),
      files,
      data,
      // No generator runs through a training: every draw is made from a hash of seed, step, row and sample.
      rng: { rollout_seed: settings.seed, data_seed: settings.data.seed, step },
    };
  }
}

/** The engines of a training whose state a checkpoint holds, by name. */
export function listEngines(training: Training): Record<string, object> {
  return { actor: training.policy.engine, ...(training.critic ? { critic: training.critic.engine } : {}) };
}
