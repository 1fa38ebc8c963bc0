import { type AdvantageEstimator, keepVaryingGroups } from "@cria/algorithms";
import { hasFailed, type Trajectory } from "@cria/core";
import {
  type DatasetRow,
  makeAllFailedError,
  type RolloutOptions,
  startRollouts,
  type UnjudgedTrajectory,
} from "@cria/rollout";
import { countSamples } from "../run/multi-turn-options.js";
import type { Session } from "../run/session-type.js";
import { addFailures, type Learnable, leaveOutFailures } from "./leave-out-failures.js";
import { readReward } from "./read-reward.js";
import type { Stopwatch } from "./stopwatch.js";

/** Rollouts of a step, groups side by side. */
export interface Rollouts extends Learnable {
  rows: DatasetRow[];
  /** n for each of `rows`, in their order: those that failed too. */
  trajectories: Trajectory[];
}

export interface CollectedRollouts {
  rows: DatasetRow[];
  /** All have ended. In the order of the trajectories that `finish` gives. */
  conversations: readonly (UnjudgedTrajectory | Trajectory)[];
  /** The same with their rewards, once all are judged. @throws ToolError when every conversation failed. */
  finish: () => Promise<Rollouts>;
  /** Whether judges are still at work, so that there is time for what needs no scores. */
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
 * Rolls out n conversations for each row. With `algorithm.filter_groups`, groups whose rewards are all equal (failed samples
 * left out) are replaced by fresh prompts until there are as many groups as rows, `max_num_gen_batches` batches were rolled
 * out (0: no limit), or every prompt had its turn; the step then goes on with the groups it has.
 * Rewards are there when the caller asks for them with `finish`, and not before.
 */
export async function collectRollouts(
  session: Session,
  rows: readonly DatasetRow[],
  options: CollectOptions,
  clock: Stopwatch,
): Promise<CollectedRollouts> {
  const { algorithm, reward_model, actor_rollout_ref } = session.config;
  const estimator = session.registries.advantageEstimators.get(algorithm.adv_estimator);
  const filter = algorithm.filter_groups;
  const first = await rollOut(session, rows, options, clock);
  const finishFirst = async () => describeRollouts(await first.finish(), rows, estimator, options.step);
  if (!filter.enable) {
    const waits = reward_model.enable && reward_model.launch_reward_fn_async;
    // What is refilled was judged already.
    const isJudging = waits && actor_rollout_ref.rollout.on_failure !== "refill";
    const { conversations } = first;
    if (isJudging) return { rows: [...rows], conversations, finish: finishFirst, isJudging, genBatches: 1 };
    return { ...keepFinished(await finishFirst()), genBatches: 1 };
  }
  let batch = await finishFirst();
  let failures = batch.failures;
  const seen = new Set(rows.map((row) => row.uid));
  const kept: Rollouts[] = [keepVarying(batch, filter.metric)];
  const count = () => kept.reduce((sum, part) => sum + part.rows.length, 0);
  let genBatches = 1;
  while (count() < rows.length && (filter.max_num_gen_batches === 0 || genBatches < filter.max_num_gen_batches)) {
    const fresh = (options.nextRows?.() ?? []).filter((row) => !seen.has(row.uid));
    if (fresh.length === 0) break;
    for (const row of fresh) seen.add(row.uid);
    const ended = await rollOut(session, fresh, options, clock);
    batch = describeRollouts(await ended.finish(), fresh, estimator, options.step);
    failures = addFailures(failures, batch.failures);
    kept.push(keepVarying(batch, filter.metric));
    genBatches++;
  }
  // Where nothing can be learned the last batch stands for the step in its metrics.
  const all = count() > 0 ? joinRollouts(kept) : batch;
  const taken = takeGroups(all, all.rows.slice(0, rows.length));
  return { ...keepFinished({ ...taken, failures }), genBatches };
}

function keepFinished(rollouts: Rollouts): Omit<CollectedRollouts, "genBatches"> {
  const { rows, trajectories } = rollouts;
  return { rows, conversations: trajectories, isJudging: false, finish: async () => rollouts };
}

/**
 * Reward of one greedy rollout of each row, the baseline of remax, by uid; rows whose rollout failed have none.
 * @throws ToolError when all failed.
 */
export async function rollOutGreedily(
  session: Session,
  rows: readonly DatasetRow[],
  step: number,
  clock: Stopwatch,
): Promise<Map<string, number>> {
  const greedy = { step, n: 1, temperature: 0 };
  const trajectories = await (await rollOut(session, rows, greedy, clock)).finish();
  const rewards = new Map(trajectories.filter((t) => !hasFailed(t)).map((t) => [t.uid, t.reward]));
  if (rewards.size === 0) throw makeAllFailedError(`the greedy rollouts of step ${step}`, trajectories);
  return rewards;
}

async function rollOut(
  session: Session,
  rows: readonly DatasetRow[],
  options: CollectOptions & { n?: number; temperature?: number },
  clock: Stopwatch,
) {
  const { rollout } = session.config.actor_rollout_ref;
  const rolloutOptions: RolloutOptions = {
    ...session.rollout,
    n: options.n ?? countSamples(rollout),
    temperature: options.temperature ?? rollout.temperature,
    topP: rollout.top_p,
    topK: Math.max(0, rollout.top_k),
    minP: rollout.min_p,
    step: options.step,
    onTrajectory: options.onTrajectory,
  };
  const ended = await clock.time("gen", () => startRollouts(session.engine, rows, rolloutOptions));
  session.rollout.signal?.throwIfAborted();
  const finish = async (): Promise<Trajectory[]> => {
    const trajectories = await clock.time("reward", ended.finish);
    session.rollout.signal?.throwIfAborted();
    return trajectories;
  };
  return { conversations: ended.conversations, finish };
}

function describeRollouts(
  trajectories: Trajectory[],
  rows: readonly DatasetRow[],
  estimator: AdvantageEstimator,
  step: number,
): Rollouts {
  if (trajectories.every(hasFailed)) throw makeAllFailedError(`step ${step}`, trajectories);
  return { rows: [...rows], trajectories, ...leaveOutFailures(trajectories, estimator) };
}

function keepVarying(rollouts: Rollouts, metric: string | null): Rollouts {
  const learnable = rollouts.indices.map((i) => rollouts.trajectories[i]!);
  const values = learnable.map((t) => readReward(t, metric, "algorithm.filter_groups.metric"));
  const uids = new Set(
    keepVaryingGroups(
      learnable.map((t) => t.uid),
      values,
    ),
  );
  return takeGroups(
    rollouts,
    rollouts.rows.filter((row) => uids.has(row.uid)),
  );
}

function takeGroups(rollouts: Rollouts, rows: readonly DatasetRow[]): Rollouts {
  const uids = new Set(rows.map((row) => row.uid));
  const learnable = new Set(rollouts.indices);
  const taken = [...rollouts.trajectories.keys()].filter((i) => uids.has(rollouts.trajectories[i]!.uid));
  return {
    rows: [...rows],
    trajectories: taken.map((i) => rollouts.trajectories[i]!),
    indices: [...taken.keys()].filter((k) => learnable.has(taken[k]!)),
    failures: rollouts.failures,
  };
}

function joinRollouts(parts: readonly Rollouts[]): Rollouts {
  const joined: Rollouts = { ...parts[0]!, rows: [], trajectories: [], indices: [] };
  for (const { rows, trajectories, indices } of parts) {
    joined.indices.push(...indices.map((i) => joined.trajectories.length + i));
    joined.rows.push(...rows);
    joined.trajectories.push(...trajectories);
  }
  return joined;
}
