import { keepVaryingGroups } from "@cria/algorithms";
import { DataError, type Trajectory } from "@cria/core";
import { type DatasetRow, runRollouts } from "@cria/rollout";
import { countSamples } from "./multi-turn-options.js";
import { rewardTokens } from "./reward-tokens.js";
import type { Session } from "./session-type.js";
import type { Stopwatch } from "./stopwatch.js";

/** Rollouts of a step, groups side by side, with their rewards. */
export interface Rollouts {
  rows: DatasetRow[];
  /** n for each of `rows`, in their order. */
  trajectories: Trajectory[];
  /** Of each trajectory, as long as its tokens. */
  tokenLevelScores: Float64Array[];
}

/** Rollouts whose conversations have ended. */
interface EndedRollouts extends Omit<Rollouts, "tokenLevelScores"> {
  /** With the scores of reward models, which may still be at work. */
  finish: () => Promise<Rollouts>;
}

export interface CollectedRollouts extends EndedRollouts {
  /** Whether reward models are still at work, so that there is time for what needs no scores. */
  isJudging: boolean;
  /** Batches of prompts that were rolled out, 1 without dynamic sampling. */
  genBatches: number;
}

export interface CollectOptions {
  step: number;
  /** Fresh prompts for dynamic sampling; without it there are none. */
  nextRows?: () => readonly DatasetRow[];
  onTrajectory?: (trajectory: Trajectory) => void;
}

/**
 * Rolls out n conversations for each row. With `algorithm.filter_groups`, groups whose rewards are all equal are replaced
 * by fresh prompts until there are as many groups as rows, `max_num_gen_batches` batches were rolled out (0: no limit), or
 * every prompt had its turn; the step then goes on with the groups it has.
 * Rewards are there when the caller asks for them with `finish`, and not before.
 */
export async function collectRollouts(
  session: Session,
  rows: readonly DatasetRow[],
  options: CollectOptions,
  clock: Stopwatch,
): Promise<CollectedRollouts> {
  const filter = session.config.algorithm.filter_groups;
  const first = await rollOut(session, rows, options, clock);
  const { enable, launch_reward_fn_async } = session.config.reward_model;
  if (!filter.enable && enable && launch_reward_fn_async) return { ...first, isJudging: true, genBatches: 1 };
  let batch = await first.finish();
  if (!filter.enable) return { ...keepFinished(batch), genBatches: 1 };
  const seen = new Set(rows.map((row) => row.uid));
  const kept: Rollouts[] = [keepVarying(batch, filter.metric)];
  const count = () => kept.reduce((sum, part) => sum + part.rows.length, 0);
  let genBatches = 1;
  while (count() < rows.length && (filter.max_num_gen_batches === 0 || genBatches < filter.max_num_gen_batches)) {
    const fresh = (options.nextRows?.() ?? []).filter((row) => !seen.has(row.uid));
    if (fresh.length === 0) break;
    for (const row of fresh) seen.add(row.uid);
    batch = await (await rollOut(session, fresh, options, clock)).finish();
    kept.push(keepVarying(batch, filter.metric));
    genBatches++;
  }
  // Where nothing can be learned the last batch stands for the step in its metrics.
  const all = count() > 0 ? joinRollouts(kept) : batch;
  return { ...keepFinished(takeGroups(all, all.rows.slice(0, rows.length))), genBatches };
}

function keepFinished(rollouts: Rollouts): Omit<CollectedRollouts, "genBatches"> {
  const { rows, trajectories } = rollouts;
  return { rows, trajectories, isJudging: false, finish: async () => rollouts };
}

/** Reward of one greedy rollout of each row, the baseline of remax, by uid. */
export async function rollOutGreedily(
  session: Session,
  rows: readonly DatasetRow[],
  step: number,
  clock: Stopwatch,
): Promise<Map<string, number>> {
  const greedy = { step, n: 1, temperature: 0 };
  const { trajectories, tokenLevelScores } = await (await rollOut(session, rows, greedy, clock)).finish();
  return new Map(trajectories.map((t, i) => [t.uid, tokenLevelScores[i]!.reduce((a, b) => a + b, 0)]));
}

async function rollOut(
  session: Session,
  rows: readonly DatasetRow[],
  options: CollectOptions & { n?: number; temperature?: number },
  clock: Stopwatch,
): Promise<EndedRollouts> {
  const { rollout } = session.config.actor_rollout_ref;
  const deferred = session.judgedRewards?.defer(session.rollout.signal);
  const trajectories = await clock.time("gen", () =>
    runRollouts(session.engine, rows, {
      ...session.rollout,
      ...(deferred ? { reward: deferred } : {}),
      n: options.n ?? countSamples(rollout),
      temperature: options.temperature ?? rollout.temperature,
      topP: rollout.top_p,
      topK: Math.max(0, rollout.top_k),
      step: options.step,
      onTrajectory: options.onTrajectory,
    }),
  );
  session.rollout.signal?.throwIfAborted();
  const finish = async (): Promise<Rollouts> => {
    const { trajectory_weight } = session.config.reward_model.aggregation;
    const judged = deferred
      ? await clock.time("reward", () => deferred.finish(trajectories, trajectory_weight))
      : trajectories;
    session.rollout.signal?.throwIfAborted();
    // A step's reward where it was earned, the trajectory's on its last sampled token.
    const tokenLevelScores = clock.timeSync("reward", () => judged.map((t) => rewardTokens(t, session)));
    return { rows: [...rows], trajectories: judged, tokenLevelScores };
  };
  return { rows: [...rows], trajectories, finish };
}

function keepVarying(rollouts: Rollouts, metric: string | null): Rollouts {
  const { rows, trajectories, tokenLevelScores } = rollouts;
  const values = trajectories.map((t, i) => readMetric(t, tokenLevelScores[i]!, metric));
  const uids = new Set(
    keepVaryingGroups(
      trajectories.map((t) => t.uid),
      values,
    ),
  );
  return takeGroups(
    rollouts,
    rows.filter((row) => uids.has(row.uid)),
  );
}

/** The value that `filter_groups.metric` names. @throws DataError when a trajectory has no such number. */
function readMetric(trajectory: Trajectory, tokenLevelScores: Float64Array, metric: string | null): number {
  if (metric === null || metric === "seq_reward" || metric === "seq_final_reward")
    return tokenLevelScores.reduce((a, b) => a + b, 0);
  const value = trajectory.extraFields[metric];
  if (typeof value === "number" || typeof value === "boolean") return Number(value);
  throw new DataError("is not what groups can be filtered by", {
    code: "data/bad-metric",
    subject: `algorithm.filter_groups.metric "${metric}" of row ${trajectory.rowIndex}`,
    expected: "seq_reward, seq_final_reward, score, or a number that the reward function returns beside its score",
    received: value === undefined ? `only ${Object.keys(trajectory.extraFields).join(", ")}` : String(value),
  });
}

function takeGroups(rollouts: Rollouts, rows: readonly DatasetRow[]): Rollouts {
  const uids = new Set(rows.map((row) => row.uid));
  const isKept = (_: unknown, i: number) => uids.has(rollouts.trajectories[i]!.uid);
  return {
    rows: [...rows],
    trajectories: rollouts.trajectories.filter(isKept),
    tokenLevelScores: rollouts.tokenLevelScores.filter(isKept),
  };
}

function joinRollouts(parts: readonly Rollouts[]): Rollouts {
  return {
    rows: parts.flatMap((part) => part.rows),
    trajectories: parts.flatMap((part) => part.trajectories),
    tokenLevelScores: parts.flatMap((part) => part.tokenLevelScores),
  };
}
