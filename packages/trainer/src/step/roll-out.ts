import { DataError, hasFailed, type SamplingOptions, type Trajectory } from "@cria/core";
import { type ChecksOf, checkOptions, isObject, optionChecks, pickSampling } from "@cria/core/internal";
import type { UnjudgedTrajectory } from "@cria/episodes";
import type { DatasetRow, OnRequestState, RolloutOptions, Semaphore } from "@cria/rollout";
import type { Policy } from "../policy/policy.js";
import { samplingChecks } from "../policy/sampling.js";
import { Running } from "../running.js";
import { checkCount } from "../task/check-definition.js";
import type { Environment } from "../task/environment.js";
import { isTask, type Task } from "../task/task.js";
import { Groups } from "./groups.js";

/** `seed` determines every random draw, together with step, row and sample; default: the policy's. */
export interface RollOutOptions extends SamplingOptions {
  /** Number of conversations of each row without its own number (`samples`), at least 1; default 8. */
  n?: number;
  /**
   * Grows the conversations of each row as trees: each tree has 1 + rounds x expansions of them, and `n` is a multiple
   * of that. In each round `expansions` ends of turns are drawn, and another conversation goes on from each. Default:
   * none, each begins at the prompt.
   */
  tree?: RolloutOptions["tree"];
  /**
   * Measures the value of each turn but a conversation's last: `continuations` further conversations go on from its
   * end, with at most `maxTokens` more tokens each (null: the rest of the response), and their mean reward is its
   * value, in `trajectory.turnValues`. Default: nothing is measured.
   */
  turnValues?: RolloutOptions["turnValues"];
  /** Default: the number of the policy's updates plus one. */
  step?: number;
  /** Name of these rollouts in errors; default "step <step>". */
  name?: string;
  /** Ends the rollouts at once. */
  signal?: AbortSignal;
  /** Called with each state that a conversation enters. */
  onState?: OnRequestState;
  /** Called with each trajectory as soon as it is judged. */
  onTrajectory?: (trajectory: Trajectory) => void;
  /**
   * Slots shared by concurrent rollouts; those of the earliest step have priority. Default: as many as the engine holds
   * sequences.
   */
  slots?: Semaphore;
  /** Runs a conversation somewhere else, using `holdConversation`; `here` runs it in this process. Default: `here`. */
  converse?: RolloutOptions["converse"];
  /** Records what tools, interactions and judges answer, and gives what was recorded. Default: nothing is recorded. */
  journal?: RolloutOptions["journal"];
  /** Chooses who samples a turn: another version of the policy, or a teacher; null, and by default: the policy. */
  choose?: RolloutOptions["choose"];
}

const { any } = optionChecks;

const isCount = (value: unknown) => Number.isInteger(value) && (value as number) >= 1;
const isTree = (value: unknown) =>
  value === null ||
  (isObject(value) && "rounds" in value && "expansions" in value && isCount(value.rounds) && isCount(value.expansions));
const isMeasurement = (value: unknown) =>
  value === null ||
  (isObject(value) &&
    "continuations" in value &&
    "maxTokens" in value &&
    isCount(value.continuations) &&
    (value.maxTokens === null || isCount(value.maxTokens)));

const rollOutChecks: ChecksOf<Required<RollOutOptions>> = {
  ...samplingChecks,
  n: any,
  tree: [isTree, "{ rounds, expansions }, whole numbers of at least 1, or null"],
  turnValues: [isMeasurement, "{ continuations, maxTokens }, whole numbers of at least 1, or null"],
  step: optionChecks.whole,
  name: optionChecks.text,
  signal: optionChecks.signal,
  onState: optionChecks.function,
  onTrajectory: optionChecks.function,
  slots: any,
  converse: optionChecks.function,
  journal: any,
  choose: optionChecks.function,
};

/** Running rollouts. Awaiting them gives their groups, or throws ToolError if every conversation failed. */
export class RunningRollouts<Row extends DatasetRow = DatasetRow> extends Running<Groups<Row>> {
  constructor(
    /** Resolves when the conversations have ended; judges may still be working then. */
    readonly ended: Promise<readonly (UnjudgedTrajectory | Trajectory)[]>,
    /** Resolves when they are judged, ordered by row and sample. Failed ones are included, and all may have failed. */
    readonly trajectories: Promise<Trajectory[]>,
    protected readonly result: Promise<Groups<Row>>,
  ) {
    super();
    // The promise that the caller awaits reports a failure; the others must not become unhandled rejections.
    for (const promise of [ended, trajectories, result]) promise.catch(() => undefined);
  }
}

/**
 * Starts the conversations of the policy for each row: `n`, or the row's own number. Await the result for the groups.
 * @param rows rows as `task.batches` and `task.load` return them, each once.
 * @throws DataError for other rows, or two with the same uid; ConfigError for a wrong `n`, or a task that cannot be
 * opened; ToolError when every conversation failed; the signal's reason when it aborts.
 */
export function rollOut<Row extends DatasetRow>(
  policy: Policy,
  task: Task<object> | Environment,
  rows: readonly Row[],
  options: RollOutOptions = {},
): RunningRollouts<Row> {
  const { n = 8, signal, step = policy.updates + 1 } = options;
  const sampling = pickSampling(options);
  const { temperature } = sampling;
  const start = async () => {
    checkOptions("rollOut", options, rollOutChecks);
    checkCount("rollOut: n", n, 1);
    checkRows(rows);
    const opened = isTask(task) ? await task.open(policy) : task;
    const { startRollouts } = await loadRollouts();
    const ended = await startRollouts(policy.engine, rows, {
      ...opened,
      tokenizer: policy.tokenizer,
      n,
      tree: options.tree,
      turnValues: options.turnValues,
      ...sampling,
      seed: options.seed ?? policy.seed,
      step,
      signal,
      onState: options.onState,
      onTrajectory: options.onTrajectory,
      converse: options.converse,
      journal: options.journal,
      slots: options.slots,
      policyVersion: policy.live === policy ? step : policy.updates + 1,
      choose: options.choose,
    });
    signal?.throwIfAborted();
    return { ...ended, responseLength: opened.responseLength, defaultAgentLoop: opened.defaultAgentLoop };
  };
  const finish = async () => {
    const trajectories = await (await started).finish();
    signal?.throwIfAborted();
    return trajectories;
  };
  const group = async () => {
    const all = await trajectories;
    const name = options.name ?? `step ${step}`;
    const { makeAllFailedError, makeNeverCalledError } = await loadRollouts();
    if (all.every(hasFailed)) throw makeAllFailedError(name, all);
    // Only in step 1: later, a trained policy may have made the agents stop calling it.
    if (step === 1 && all.every(({ tokenIds }) => tokenIds.length === 0))
      throw makeNeverCalledError(name, await listAgents(), all.length);
    return new Groups({ rows, trajectories: all, temperature, responseLength: (await started).responseLength });
  };
  const listAgents = async () => {
    const { defaultAgentLoop } = await started;
    return [...new Set(rows.map(({ agentName }) => agentName ?? defaultAgentLoop))];
  };
  const started = start();
  const trajectories = finish();
  return new RunningRollouts(
    started.then(({ conversations }) => conversations),
    trajectories,
    group(),
  );
}

/** Loaded on first use, so that programs that only import `rollOut` start faster. */
const loadRollouts = () => import("./start-rollouts.js");

/** Checks that each row has a uid and occurs once, because the uid identifies the group. */
function checkRows(rows: readonly DatasetRow[]): void {
  const refuse = (subject: string, summary: string, expected: string, received: string) =>
    new DataError(summary, {
      code: "data/bad-rows",
      subject,
      expected,
      received,
      remedy: "give rows as task.batches and task.load do; roll out train and held-out rows apart",
    });
  if (rows.length === 0) throw refuse("rollOut: rows", "are none", "at least one row", "an empty list");
  const places = new Map<string, number>();
  for (const [i, row] of rows.entries()) {
    const { uid } = row;
    if (typeof uid !== "string")
      throw refuse(
        `rollOut: rows[${i}]`,
        "is no row of a task",
        "a row with a uid",
        `keys ${Object.keys(row).join(", ")}`,
      );
    const first = places.get(uid);
    places.set(uid, i);
    if (first === undefined) continue;
    const both = `rows[${first}] and rows[${i}], both "${uid}"`;
    throw refuse("rollOut: rows", "has two rows of one uid", "each row once", both);
  }
}
