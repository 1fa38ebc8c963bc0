import type { EstimatorState } from "@cria/algorithms";
import type { TokenDetails } from "@cria/records";
import { type Checkpoint, restoreEngines, type Unvalidated } from "../checkpoints/checkpoint-store.js";
import { listPolicies, nameForRole } from "../policy/of-role.js";
import { type GroupSamplerState, type KeptGroup, ReplayBuffer } from "../replay-buffer/replay-buffer.js";
import { REPLAY_FILE, readReplayFile, writeReplayFile } from "../replay-buffer/replay-file.js";
import type { StepInputs, StepResult } from "../step/training-step.js";
import { type DealtRows, PassesOverRows, type RowOrder } from "./row-order.js";
import { SampledOrder } from "./sampled-order.js";
import type { StepState } from "./steps.js";
import type { Training } from "./training.js";

/** A checkpoint's data.json, without the part of the order of rows. */
interface RunStateData extends Unvalidated, Record<string, unknown> {
  kl_controller: { coefficient: number };
  /** Missing in checkpoints of earlier versions. */
  estimator?: EstimatorState;
  /** Missing if no sampler of groups has a state. */
  group_sampler?: GroupSamplerState;
}

/** State that changes from step to step, in addition to the engines. */
export interface RunPlace {
  /** Number of steps done. */
  step: number;
  /** Returns the part of a checkpoint that belongs to the order of rows. */
  saveRows: () => Record<string, unknown>;
  klController: { coefficient: number };
  estimator: EstimatorState;
  /** Groups in the replay buffer; null: there is none. */
  groups: readonly KeptGroup[] | null;
  /** State of the buffer's sampler; null: it has none. */
  groupSampler: GroupSamplerState | null;
}

/** The whole state of a training that changes from step to step and is stored in checkpoints. */
export class RunState {
  private readonly rows: RowOrder;
  /** null: steps learn only from their own groups. */
  private readonly buffer: ReplayBuffer | null;

  constructor(private readonly training: Training) {
    const { rowSampler, settings, registries } = training;
    const { replay } = settings.algorithm;
    this.buffer = replay && new ReplayBuffer(replay, settings.seed, registries.groupSamplers);
    this.rows = rowSampler ? new SampledOrder(training, rowSampler) : new PassesOverRows(training);
  }

  /**
   * Restores the state of a checkpoint.
   * @returns the metrics of its step if the validation after it was interrupted.
   * @throws DataError or EngineError
   */
  async restore(checkpoint: Checkpoint): Promise<Unvalidated["unvalidated"]> {
    const data = checkpoint.data as RunStateData | null;
    if (!data) return undefined;
    this.rows.restore(data);
    this.buffer?.restore(await readReplayFile(checkpoint.path), data.group_sampler);
    this.training.klController.restore(data.kl_controller);
    this.training.estimatorState.current = data.estimator ?? {};
    await restoreEngines(checkpoint, listEngines(this.training));
    return data.unvalidated;
  }

  /** Returns the rows of a step. Steps are dealt in order; with a lag, before earlier steps are learned from. */
  deal(step: number): DealtRows {
    return this.rows.deal(step);
  }

  /** Returns a function that draws groups of earlier steps for a step, given the number of its own groups. */
  replayFor(step: number): StepInputs["replay"] {
    const { buffer } = this;
    return buffer ? (own) => buffer.draw(step, own) : undefined;
  }

  /** Records the result of a step that was learned from, for later steps. */
  learn(step: number, result: Pick<StepResult, "trajectories" | "leftOut" | "advantages" | "tokenDetails">): void {
    this.rows.learn(step, result);
    this.buffer?.add(step, result.trajectories, result.tokenDetails.map(findLargest));
  }

  /** Returns the place after `step` steps, of which the last was just finished. */
  mark(step: number): RunPlace {
    const { training, buffer } = this;
    return {
      step,
      saveRows: this.rows.mark(step),
      klController: training.klController.save(),
      estimator: training.estimatorState.current,
      groups: buffer?.groups ?? null,
      groupSampler: buffer?.saveSampler() ?? null,
    };
  }

  /** Describes the parts of a checkpoint, made at a place of this training. */
  describe({ step, saveRows, klController, estimator, groups, groupSampler }: RunPlace): StepState {
    const { settings } = this.training;
    const files: StepState["files"] = groups ? { [REPLAY_FILE]: (path) => writeReplayFile(path, groups) } : {};
    const data: RunStateData = {
      ...saveRows(),
      kl_controller: klController,
      estimator,
      ...(groupSampler ? { group_sampler: groupSampler } : {}),
    };
    return {
      engines: listEngines(this.training),
      files,
      data,
      // There is no generator with a state: every draw is computed from a hash of seed, step, row and sample.
      rng: { rollout_seed: settings.seed, data_seed: settings.data.seed, step },
    };
  }
}

/** The size of a trajectory's largest advantage: a mean may be 0 where roles are paid against each other. */
function findLargest({ advantages }: TokenDetails): number | null {
  if (!advantages) return null;
  let largest = 0;
  for (let t = 0; t < advantages.length; t++) largest = Math.max(largest, Math.abs(advantages[t]!));
  return largest;
}

/** The engines whose state a checkpoint holds, by name. */
export function listEngines(training: Training): Record<string, object> {
  const actors = listPolicies(training.policy).map(([role, { engine }]) => [nameForRole("actor", role), engine]);
  return { ...Object.fromEntries(actors), ...(training.critic ? { critic: training.critic.engine } : {}) };
}
