import { type AdvantageEstimator, keepTopVariance, keepVaryingGroups } from "@cria/algorithms";
import { DataError, hasFailed, type Trajectory } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";
import type { DatasetRow } from "@cria/rollout";
import type { AlgorithmOptions } from "../config/options/algorithm.js";
import type { Stopwatch } from "../timing/stopwatch.js";
import { addFailures, type Groups, type Learnable } from "./groups.js";
import type { RunningRollouts } from "./roll-out.js";

/** Rollouts of a step, group by group. */
export interface StepTrajectories extends Learnable {
  rows: DatasetRow[];
  /** All trajectories of each of `rows`, in the order of the rows; failed ones are included. */
  trajectories: Trajectory[];
  /** Trajectories of groups that `filter` removed, and of surplus groups. */
  leftOut: Trajectory[];
}

/** The ended conversations of a step; judges may still be working. */
export interface SampledStep {
  rows: DatasetRow[];
  /** Ended conversations, in the order of the trajectories that `finish` returns. */
  conversations: readonly (UnjudgedTrajectory | Trajectory)[];
  /**
   * Returns the same conversations with their rewards, once all are judged.
   * @throws ToolError when every conversation failed.
   */
  finish: () => Promise<StepTrajectories>;
  /** True if judges are still working, so that the caller can meanwhile do work that needs no scores. */
  isJudging: boolean;
  /** Number of prompt batches rolled out; 1 without dynamic sampling. */
  genBatches: number;
  /** Baselines by uid; null: the estimator needs none. */
  greedyRewards: ReadonlyMap<string, number> | null;
}

type CollectedStep = Omit<SampledStep, "greedyRewards">;

export interface CollectOptions {
  /** Starts rollouts of rows. */
  rollOut: (rows: readonly DatasetRow[]) => RunningRollouts;
  estimator: AdvantageEstimator;
  /** Selects the groups to replace; null: no group is replaced. */
  filter: AlgorithmOptions["filterGroups"];
  /** True if the caller has other work to do while judges run. */
  mayJudgeLater: boolean;
  /** Returns fresh prompts for dynamic sampling; left out: there are none. */
  nextRows?: () => readonly DatasetRow[];
}

/**
 * Rolls out the conversations of each row. With a `filter`, groups whose rewards are all equal (not counting failed
 * samples) are replaced by fresh prompts until there are as many groups as rows, `maxNumGenBatches` batches were rolled
 * out (0: no limit), or no unseen prompts are left; the step then continues with the groups it has. With
 * `varianceShare` it learns from those of them that vary most, and the others are not replaced. Without a `filter`
 * and with `mayJudgeLater`, only `finish` waits for the rewards.
 */
export async function collectRollouts(
  rows: readonly DatasetRow[],
  { rollOut, estimator, filter, mayJudgeLater, nextRows }: CollectOptions,
  clock: Stopwatch,
): Promise<CollectedStep> {
  const judge = ({ finish }: Pick<CollectedStep, "finish">) => clock.time("reward", finish);
  const start = async (asked: readonly DatasetRow[]) => {
    const running = rollOut(asked);
    const conversations = await clock.time("gen", () => running.ended);
    return {
      conversations,
      finish: async () => describeRollouts(await running, estimator),
    };
  };
  const first = await start(rows);
  if (!filter) {
    const { conversations, finish } = first;
    if (mayJudgeLater) return { rows: [...rows], conversations, finish, isJudging: true, genBatches: 1 };
    return { ...keepFinished(await judge(first)), genBatches: 1 };
  }
  let batch = await judge(first);
  let failures = batch.failures;
  const judged = [...batch.trajectories];
  const seen = new Set(rows.map((row) => row.uid));
  const kept: StepTrajectories[] = [keepVarying(batch, filter)];
  const count = () => kept.reduce((sum, part) => sum + part.rows.length, 0);
  let genBatches = 1;
  while (count() < rows.length && (filter.maxNumGenBatches === 0 || genBatches < filter.maxNumGenBatches)) {
    const fresh = (nextRows?.() ?? []).filter((row) => !seen.has(row.uid));
    if (fresh.length === 0) break;
    for (const row of fresh) seen.add(row.uid);
    batch = await judge(await start(fresh));
    failures = addFailures(failures, batch.failures);
    judged.push(...batch.trajectories);
    kept.push(keepVarying(batch, filter));
    genBatches++;
  }
  // If no group varies, the last batch provides the step's metrics.
  const all = count() > 0 ? joinRollouts(kept) : batch;
  const full = takeGroups(all, all.rows.slice(0, rows.length));
  const taken = filter.varianceShare < 1 ? keepVariance(full, filter) : full;
  const used = new Set(taken.trajectories);
  const leftOut = judged.filter((trajectory) => !used.has(trajectory));
  return { ...keepFinished({ ...taken, failures, leftOut }), genBatches };
}

function keepFinished(rollouts: StepTrajectories): Omit<CollectedStep, "genBatches"> {
  const { rows, trajectories } = rollouts;
  return { rows, conversations: trajectories, isJudging: false, finish: async () => rollouts };
}

/**
 * Rolls out each row once, greedily. Returns the rewards by uid, which are the baselines of remax; rows whose rollout
 * failed have none.
 * @param rollOut starts one greedy rollout of each row.
 * @throws ToolError when all failed.
 */
export async function rollOutGreedily(
  rows: readonly DatasetRow[],
  rollOut: CollectOptions["rollOut"],
  clock: Stopwatch,
): Promise<Map<string, number>> {
  const running = rollOut(rows);
  await clock.time("gen", () => running.ended);
  const { trajectories } = await clock.time("reward", async () => running);
  return new Map(trajectories.filter((t) => !hasFailed(t)).map((t) => [t.uid, t.reward]));
}

function describeRollouts(groups: Groups, estimator: AdvantageEstimator): StepTrajectories {
  const { rows, trajectories } = groups;
  return { rows: [...rows], trajectories: [...trajectories], leftOut: [], ...groups.leaveOutFailures(estimator) };
}

type Filter = NonNullable<AlgorithmOptions["filterGroups"]>;

const keepVarying = (rollouts: StepTrajectories, filter: Filter) =>
  selectGroups(rollouts, filter, (uids, values) => keepVaryingGroups(uids, values, filter.minSpread));

const keepVariance = (rollouts: StepTrajectories, filter: Filter) =>
  selectGroups(rollouts, filter, (uids, values) => keepTopVariance(uids, values, filter.varianceShare));

/** @param select returns the uids of the groups to keep, given the uid and value of each learnable trajectory. */
function selectGroups(
  rollouts: StepTrajectories,
  { metric }: Filter,
  select: (uids: string[], values: number[]) => string[],
): StepTrajectories {
  const learnable = rollouts.indices.map((i) => rollouts.trajectories[i]!);
  const values = learnable.map((t) => readReward(t, metric, "algorithm.filter_groups.metric"));
  const uids = learnable.map((t) => t.uid);
  const kept = new Set(select(uids, values));
  return takeGroups(
    rollouts,
    rollouts.rows.filter((row) => kept.has(row.uid)),
  );
}

function takeGroups(rollouts: StepTrajectories, rows: readonly DatasetRow[]): StepTrajectories {
  const uids = new Set(rows.map((row) => row.uid));
  const learnable = new Set(rollouts.indices);
  const taken = [...rollouts.trajectories.keys()].filter((i) => uids.has(rollouts.trajectories[i]!.uid));
  return {
    rows: [...rows],
    trajectories: taken.map((i) => rollouts.trajectories[i]!),
    indices: [...taken.keys()].filter((k) => learnable.has(taken[k]!)),
    failures: rollouts.failures,
    leftOut: [],
  };
}

function joinRollouts(parts: readonly StepTrajectories[]): StepTrajectories {
  const joined: StepTrajectories = { ...parts[0]!, rows: [], trajectories: [], indices: [] };
  for (const { rows, trajectories, indices } of parts) {
    joined.indices.push(...indices.map((i) => joined.trajectories.length + i));
    joined.rows.push(...rows);
    joined.trajectories.push(...trajectories);
  }
  return joined;
}

/**
 * Reads the number that a config names: seq_reward (the same as null), seq_final_reward, score, or a number that the
 * reward function returned in addition to the score.
 * @param key key of the config, for the error.
 * @throws DataError when the trajectory has no such number.
 */
export function readReward(
  { reward, rewards, extraFields, rowIndex }: Trajectory,
  name: string | null,
  key: string,
): number {
  if (name === null || name === "seq_reward" || name === "seq_final_reward") return reward;
  if (name === "score") return rewards.score!;
  const value = extraFields[name];
  if (typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value))) return Number(value);
  throw new DataError("is no number of this conversation", {
    code: "data/bad-metric",
    subject: `${key} "${name}" of row ${rowIndex}`,
    expected: "seq_reward, seq_final_reward, score, or a number that the reward function returns beside its score",
    received: value === undefined ? `only ${["score", ...Object.keys(extraFields)].join(", ")}` : String(value),
  });
}
