import { hasFailed, type Trajectory } from "@cria/core";
import {
  type DatasetRow,
  type EndedRollouts,
  makeAllFailedError,
  startRollouts,
  type UnjudgedTrajectory,
} from "@cria/rollout";
import type { Policy } from "../policy/policy.js";
import type { Environment } from "../task/environment.js";
import { isTask, type Task } from "../task/task.js";
import { Groups } from "./groups.js";

export interface RollOutOptions {
  /** Conversations of each row; default 8. */
  n?: number;
  /** Of sampling; 0 is greedy. Default 1. */
  temperature?: number;
  /** In (0, 1]; default 1: all tokens. */
  topP?: number;
  /** Default 0: all tokens. */
  topK?: number;
  /** In [0, 1); default 0: all tokens. */
  minP?: number;
  /** With step, row and sample it decides every random draw; default: the policy's. */
  seed?: number;
  /** Default: the number of the policy's updates plus one. */
  step?: number;
  /** Name of these rollouts in errors; default "step <step>". */
  name?: string;
  signal?: AbortSignal;
  /** Called with each trajectory as soon as it is judged. */
  onTrajectory?: (trajectory: Trajectory) => void;
}

/** Rollouts that are running. Await them for their groups. */
export class RunningRollouts implements PromiseLike<Groups> {
  private readonly groups: Promise<Groups>;

  constructor(
    /** When the conversations are over; their judges may still be at work then. */
    readonly ended: Promise<readonly (UnjudgedTrajectory | Trajectory)[]>,
    groups: () => Promise<Groups>,
  ) {
    this.groups = groups();
    // Whichever promise the caller awaits reports a failure; the other must not become an unhandled rejection.
    this.ended.catch(() => undefined);
    this.groups.catch(() => undefined);
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited as a promise is.
  then<A = Groups, B = never>(
    onGroups?: ((groups: Groups) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.groups.then(onGroups, onError);
  }
}

/**
 * Lets the policy hold n conversations for each row. `task.batches` gives such rows.
 * @throws ToolError when every conversation failed; the signal's reason when it aborts.
 */
export function rollOut(
  policy: Policy,
  task: Task<object> | Environment,
  rows: readonly DatasetRow[],
  options: RollOutOptions = {},
): RunningRollouts {
  const environment = isTask(task) ? task.open(policy) : Promise.resolve(task);
  const { signal, temperature = 1, step = policy.updates + 1 } = options;
  let responseLength = 0;
  const start = async (): Promise<EndedRollouts> => {
    const opened = await environment;
    responseLength = opened.responseLength;
    const ended = await startRollouts(policy.engine, rows, {
      ...opened,
      tokenizer: policy.tokenizer,
      n: options.n ?? 8,
      temperature,
      topP: options.topP ?? 1,
      topK: options.topK ?? 0,
      minP: options.minP ?? 0,
      seed: options.seed ?? policy.seed,
      step,
      signal,
      onTrajectory: options.onTrajectory,
    });
    signal?.throwIfAborted();
    return ended;
  };
  const started = start();
  return new RunningRollouts(
    started.then(({ conversations }) => conversations),
    async () => {
      const trajectories = await (await started).finish();
      signal?.throwIfAborted();
      const groups = new Groups({ rows, trajectories, temperature, responseLength });
      if (trajectories.every(hasFailed)) throw makeAllFailedError(options.name ?? `step ${step}`, trajectories);
      return groups;
    },
  );
}
