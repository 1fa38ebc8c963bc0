import type { ScoreShard, ShardScores, Trajectory } from "@cria/core";
import type { ClusterView } from "@cria/records";
import type { RolloutOptions } from "@cria/rollout";
import type { TrainConfig } from "../config/train-config.js";
import type { Report } from "../events.js";
import type { Policy } from "../policy/policy.js";
import type { UpdateOptions } from "../policy/update-policy.js";
import type { StepMetrics } from "../step-metrics.js";
import type { Environment } from "../task/environment.js";
import type { Task } from "../task/task.js";
import type { Registries } from "../user-code/registries.js";

/** Machines that share the work of a training. `openNatsBus` and `openLocalBus` of @cria/cluster return one. */
export interface TrainingBus {
  /**
   * Waits for the right to coordinate: a standby waits here while another process trains.
   * @param holder name of the waiting process, for users.
   * @param onWait called with the reason of the wait, and each time that it changes: a sentence for users.
   */
  lead(holder: string, signal?: AbortSignal, onWait?: (reason: string) => void): Promise<Leadership>;
  /**
   * The newest checkpoint that a coordinator of the run put on the bus (`Coordination.saveCheckpoint`); null: none.
   * Only the leader may call it; earlier leaders can then no longer replace that checkpoint.
   */
  findCheckpoint(run: string): Promise<StoredCheckpoint | null>;
  /**
   * Begins to hand out a run's work. The weights must be those that workers start from, so call it before a
   * checkpoint is restored.
   */
  coordinate(run: CoordinatedRun): Promise<Coordination>;
}

/** The right to coordinate. */
export interface Leadership {
  /** Aborts when the right is lost: its former holder must not write any more. */
  readonly signal: AbortSignal;
  /** Gives it back: a standby takes over at once. Never rejects. */
  release(): Promise<void>;
}

/** The data that another machine needs to continue a run. */
export interface SharedCheckpoint {
  /** Name of the run on the bus. */
  run: string;
  /** Number of steps done. */
  step: number;
  /** The run folder. */
  folder: string;
  /** Paths within it, of letters, digits, `_`, `-`, `.` and `/`. */
  files: readonly string[];
}

/** A checkpoint on the bus. */
export interface StoredCheckpoint {
  step: number;
  /**
   * Writes and syncs its files below a folder, where none of them may exist.
   * @returns their paths within it.
   * @throws ClusterError when a part is missing or damaged; DataError when a file cannot be written; the signal's
   * reason. Some files may exist then.
   */
  fetch(folder: string, options?: { report?: Report; signal?: AbortSignal }): Promise<string[]>;
}

/** The data about a training that workers need, and the parts that this process works with. */
export interface CoordinatedRun {
  config: TrainConfig;
  /** Base of the config's relative paths. */
  configFolder: string;
  /** The task, if it is in memory: workers must have the same one. */
  task?: Task<object>;
  policy: Policy;
  environment: Environment;
  /** Registries of the names in the config. */
  registries: Registries;
  report?: Report;
  signal?: AbortSignal;
}

/**
 * Distributes a training's work. Each call takes one job and a function that does it in this process; the bits are
 * the same wherever it is done.
 */
export interface Coordination {
  /** Publishes weights that may have changed: later scores and gradients use them. The engine must be idle. */
  readonly publish: () => Promise<void>;
  /**
   * Returns a function that holds conversations of a policy: of the current state of the trained one, or of a kept
   * version, unaffected by later updates. Publishes new weights; for the trained policy the engine must be idle.
   */
  converseBy(policy: Policy): Promise<NonNullable<RolloutOptions["converse"]>>;
  /** @param conversations all that have tokens in the shard. */
  readonly score: (
    shard: ScoreShard,
    here: () => Promise<ShardScores>,
    conversations: readonly Pick<Trajectory, "tokenIds">[],
  ) => Promise<ShardScores>;
  readonly compute: NonNullable<UpdateOptions["compute"]>;
  /**
   * Compares the step's logprobs of its conversations with those that workers reported.
   * @param staleness number of updates between the policy that sampled them and the one that the step computed with.
   */
  checkLogprobs(
    conversations: readonly (Pick<Trajectory, "tokenIds" | "responseMask" | "rolloutLogprobs"> & {
      oldLogprobs: Float32Array;
    })[],
    staleness: number,
  ): void;
  /**
   * Puts a checkpoint on the bus, replacing the run's older one. If it throws, the older one is kept.
   * @throws ClusterError when the bus does not keep it or the lead is lost; errors of reading its files.
   */
  saveCheckpoint(checkpoint: SharedCheckpoint): Promise<void>;
  /** Metrics `cluster/...` since the last call. */
  takeMetrics(): StepMetrics;
  /** Present state, for users. */
  readonly view: () => ClusterView;
  /** Withdraws jobs in progress. The bus stays open. Never rejects. */
  close(): Promise<void>;
}
