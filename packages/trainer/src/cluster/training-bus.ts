import type { Trajectory } from "@cria/core";
import type { RolloutOptions } from "@cria/rollout";
import type { TrainConfig } from "../config/train-config.js";
import type { Report } from "../events.js";
import type { ClusterView } from "../live/cluster-view.js";
import type { Policy } from "../policy/policy.js";
import type { PolicyScoreOptions } from "../policy/token-scores.js";
import type { UpdateOptions } from "../policy/update-policy.js";
import type { StepMetrics } from "../step-metrics.js";
import type { Environment } from "../task/environment.js";
import type { Task } from "../task/task.js";
import type { Registries } from "../user-code/registries.js";

/** Machines that share the work of a training. `openNatsBus` and `openLocalBus` of @cria/cluster give one. */
export interface TrainingBus {
  /**
   * Waits for the right to coordinate: a standby waits here while another trains.
   * @param holder who asks, for people.
   * @param onWait called with what is waited for, and each time that this changes: a sentence for people.
   */
  lead(holder: string, signal?: AbortSignal, onWait?: (reason: string) => void): Promise<Leadership>;
  /**
   * The newest checkpoint that a coordinator of the run put into the bus (`Coordination.saveCheckpoint`); null: none. Only for who
   * has the lead: who had it before cannot replace that checkpoint any more.
   */
  findCheckpoint(run: string): Promise<StoredCheckpoint | null>;
  /**
   * Begins to hand out a run's work. Its weights must be those that workers start from: it is called before a checkpoint is
   * restored.
   */
  coordinate(run: CoordinatedRun): Promise<Coordination>;
}

/** The right to coordinate. */
export interface Leadership {
  /** Aborted when the right is lost: whoever had it must not write any more. */
  readonly signal: AbortSignal;
  /** Gives it back: a standby takes over at once. Never rejects. */
  release(): Promise<void>;
}

/** What another machine needs to go on with a run. */
export interface SharedCheckpoint {
  /** Names the run among those of the bus. */
  run: string;
  /** Steps done. */
  step: number;
  /** The run folder. */
  folder: string;
  /** Paths within it, of letters, digits, `_`, `-`, `.` and `/`. */
  files: readonly string[];
}

/** A checkpoint that lies in the bus. */
export interface StoredCheckpoint {
  step: number;
  /**
   * Writes and syncs its files below a folder, which must have none of them.
   * @returns their paths within it.
   * @throws ClusterError when a part is missing or damaged; DataError when a file cannot be written; the signal's reason. Some files may be
   * there then.
   */
  fetch(folder: string, options?: { report?: Report; signal?: AbortSignal }): Promise<string[]>;
}

/** What workers need to know of a training, and what is done here. */
export interface CoordinatedRun {
  config: TrainConfig;
  /** Where relative paths of the config start. */
  configFolder: string;
  /** Where the run takes place in memory: workers must have the same task. */
  task?: Task<object>;
  policy: Policy;
  environment: Environment;
  /** What names in the config stand for. */
  registries: Registries;
  report?: Report;
  signal?: AbortSignal;
}

/**
 * Where a training's work is done. Each call takes one job and a function that does it in this process; the bits are the same
 * wherever it is done.
 */
export interface Coordination {
  /** The weights changed, or may have: scores and gradients that come next are computed with those of now. The engine must be free. */
  readonly publish: () => Promise<void>;
  /**
   * Holds conversations of a policy, whatever becomes of the weights meanwhile: of the one that is trained, as it is now, or of a
   * kept version. Publishes what is new. For the one that is trained the engine must be free.
   */
  converseBy(policy: Policy): Promise<NonNullable<RolloutOptions["converse"]>>;
  readonly score: NonNullable<PolicyScoreOptions["compute"]>;
  readonly compute: NonNullable<UpdateOptions["compute"]>;
  /**
   * Says what the step computed of its conversations' tokens: what workers said of them is compared with that.
   * @param staleness updates between the policy that sampled them and the one that the step computed with.
   */
  checkLogprobs(
    conversations: readonly (Pick<Trajectory, "tokenIds" | "responseMask" | "rolloutLogprobs"> & {
      oldLogprobs: Float32Array;
    })[],
    staleness: number,
  ): void;
  /**
   * Puts a checkpoint into the bus, in place of the run's older one. When it throws, that one is still there.
   * @throws ClusterError, when the bus does not keep it or the lead is lost; what reading its files throws.
   */
  saveCheckpoint(checkpoint: SharedCheckpoint): Promise<void>;
  /** What was done since the last call: metrics `cluster/...` of a step. */
  takeMetrics(): StepMetrics;
  /** What is going on now, for people. */
  readonly view: () => ClusterView;
  /** Withdraws what is under way. The bus stays open. Never rejects. */
  close(): Promise<void>;
}
