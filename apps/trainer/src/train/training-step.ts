import {
  type AdvantageInputs,
  type AdvantageOutputs,
  advantageEstimators,
  correctRollout,
  penalizeRewards,
} from "@cria/algorithms";
import type { TrainSequence, Trajectory } from "@cria/core";
import type { DatasetRow } from "@cria/rollout";
import { makeRolloutCorrectionOptions } from "./algorithm-options.js";
import { collectMetrics, type StepMetrics } from "./collect-metrics.js";
import { collectRollouts, rollOutGreedily } from "./collect-rollouts.js";
import { countSteps } from "./count-steps.js";
import { scoreValues, updateCritic } from "./critic.js";
import { joinTokens, layOutTokens, sumTokens } from "./flat-tokens.js";
import { computeLearningRate } from "./learning-rate.js";
import { leaveOutGroupsWithoutBaseline } from "./leave-out-failures.js";
import { makePolicyLossOptions, needsEveryTrajectory } from "./policy-loss-options.js";
import { scoreTrajectories, type TokenScores } from "./score-trajectories.js";
import type { Session } from "./session-type.js";
import { Stopwatch } from "./stopwatch.js";
import { updateActor } from "./update-actor.js";

export interface StepResult {
  /** Of the step's prompts, those that failed too. */
  trajectories: Trajectory[];
  metrics: StepMetrics;
}

/** Where failures leave no trajectory: estimators need not expect that. */
const nothing: AdvantageOutputs = { advantages: new Float32Array(0), returns: new Float32Array(0), metrics: {} };

/**
 * One training step, top to bottom: rollouts, rewards, logprobs, advantages, updates.
 * @param nextRows hands out fresh prompts for dynamic sampling.
 */
export async function runTrainingStep(
  session: Session,
  rows: readonly DatasetRow[],
  step: number,
  epoch: number,
  onTrajectory?: (trajectory: Trajectory) => void,
  nextRows?: () => readonly DatasetRow[],
): Promise<StepResult> {
  const { config, klController, critic } = session;
  const { algorithm } = config;
  const { actor } = config.actor_rollout_ref;
  const clock = new Stopwatch();
  const estimate = advantageEstimators.get(algorithm.adv_estimator);
  const isWarm = !critic || step > critic.warmup;

  // 1. Roll out n conversations for each prompt; tools run and rewards are judged on the way. With filter_groups, prompts
  //    whose group has nothing to teach are replaced.
  const collected = await collectRollouts(session, rows, { step, nextRows, onTrajectory }, clock);
  const greedyRewards = estimate.needs?.includes("baselines")
    ? await rollOutGreedily(session, collected.rows, step, clock)
    : null;

  // 2. While judges are at work the logprobs are recomputed, of all: which of them have an advantage is not known yet.
  const early = new Map<number, TokenScores>();
  if (collected.isJudging && isWarm) {
    const { conversations } = collected;
    const sampled = [...conversations.keys()].filter((i) => conversations[i]!.responseMask.includes(1));
    await scoreTrajectories(session, conversations, sampled, early, clock);
  }
  const rollouts = await collected.finish();

  // 3. What failed teaches nothing: it is out of all that follows.
  const { indices, failures } = leaveOutGroupsWithoutBaseline(rollouts, rollouts.trajectories, greedyRewards);
  const trajectories = indices.map((i) => rollouts.trajectories[i]!);
  const groups = trajectories.map((t) => t.uid);
  const isEmpty = trajectories.length === 0;
  const scores = new Map<number, TokenScores>();
  indices.forEach((original, index) => {
    if (early.has(original)) scores.set(index, early.get(original)!);
  });

  // 4. Per-token arrays of what is left, end to end: rewards, less the KL to the reference where that is wanted.
  const offsets = layOutTokens(trajectories);
  const join = (arrays: readonly (ArrayLike<number> | null | undefined)[]) => joinTokens(offsets, arrays);
  const responseMask = join(trajectories.map((t) => t.responseMask));
  const hasSampled = trajectories.map((t) => t.responseMask.includes(1));
  const score = async (isWanted: (index: number) => boolean) => {
    const indices = [...trajectories.keys()].filter((i) => hasSampled[i] && isWanted(i));
    await scoreTrajectories(session, trajectories, indices, scores, clock);
    return indices;
  };
  let tokenLevelRewards = join(trajectories.map((t) => t.rewards.tokenLevel));
  let penalty: { kl: number; coefficient: number } | null = null;
  if (algorithm.use_kl_in_reward && !isEmpty) {
    await score(() => true);
    const { coefficient } = klController;
    const penalized = penalizeRewards({
      tokenLevelScores: tokenLevelRewards,
      oldLogprobs: join(trajectories.map((_, i) => scores.get(i)?.oldLogprobs)),
      refLogprobs: join(trajectories.map((_, i) => scores.get(i)?.refLogprobs)),
      responseMask,
      offsets,
      type: algorithm.kl_penalty,
      coefficient,
    });
    tokenLevelRewards = penalized.tokenLevelRewards;
    penalty = { kl: penalized.kl, coefficient };
    klController.update(penalized.kl, trajectories.length);
  }

  // 5. Advantages of every sampled token, from a critic's values where there is one.
  const values =
    critic && !isEmpty ? await clock.time("values", () => scoreValues(session, critic, trajectories)) : null;
  const estimateOf = (inputs: AdvantageInputs) => (isEmpty ? nothing : estimate(inputs));
  const estimated = clock.timeSync("adv", () =>
    estimateOf({
      tokenLevelRewards,
      responseMask,
      offsets,
      groups,
      values: values ? join(values) : undefined,
      baselines: greedyRewards ? trajectories.map((t) => greedyRewards.get(t.uid)!) : undefined,
      gamma: algorithm.gamma,
      lam: algorithm.lam,
      normalizeByStd: algorithm.norm_adv_by_std_in_grpo,
    }),
  );
  const cut = (flat: Float32Array) => trajectories.map((_, i) => flat.subarray(offsets[i]!, offsets[i + 1]!));
  const advantages = cut(estimated.advantages);

  // 6. Logprobs of what the update needs: nothing while the critic warms up. A trajectory without advantage usually has no
  //    gradient, and is not evaluated.
  const needsAll = needsEveryTrajectory(config);
  const used = new Set(await score((i) => isWarm && (needsAll || advantages[i]!.some((a) => Math.abs(a) > 1e-8))));

  // 7. Weights and rejections for what separates the sampler from the training graph, over all that was evaluated.
  const scored = [...scores.keys()].sort((a, b) => a - b);
  const scoredOffsets = layOutTokens(scored.map((i) => trajectories[i]!));
  const joinScored = (pick: (index: number) => ArrayLike<number>) => joinTokens(scoredOffsets, scored.map(pick));
  const correction = correctRollout(
    {
      oldLogprobs: joinScored((i) => scores.get(i)!.oldLogprobs),
      rolloutLogprobs: joinScored((i) => trajectories[i]!.rolloutLogprobs),
      responseMask: joinScored((i) => trajectories[i]!.responseMask),
      offsets: scoredOffsets,
    },
    makeRolloutCorrectionOptions(algorithm),
  );

  // 8. The batch: per-token columns for the loss.
  const lossMasks: ArrayLike<number>[] = trajectories.map((t) => t.responseMask);
  const batch = new Map<number, TrainSequence>();
  scored.forEach((index, k) => {
    const { tokenIds } = trajectories[index]!;
    const { oldLogprobs, refLogprobs } = scores.get(index)!;
    const [from, to] = [scoredOffsets[k]!, scoredOffsets[k + 1]!];
    const lossMask = correction.lossMask.subarray(from, to);
    const rolloutIsWeights = correction.weights?.subarray(from, to);
    lossMasks[index] = lossMask;
    if (!used.has(index) || !lossMask.includes(1)) return;
    batch.set(index, {
      tokenIds,
      lossMask,
      columns: {
        advantages: advantages[index]!,
        oldLogprobs,
        ...(refLogprobs ? { refLogprobs } : {}),
        ...(rolloutIsWeights ? { rolloutIsWeights } : {}),
      },
    });
  });

  // 9. Updates in mini-batches of prompts: the critic's, then the actor's once the critic is warm.
  const total = countSteps(session);
  const criticLearningRate = computeLearningRate(config.critic.optim, step, total);
  // The actor's schedule begins with its first update, after the critic's warm-up, and ends with the run.
  const frozen = critic?.warmup ?? 0;
  const learningRate = isWarm ? computeLearningRate(actor.optim, step - frozen, total - frozen) : null;
  const criticUpdates =
    critic && values
      ? await clock.time("update_critic", () =>
          updateCritic(session, critic, {
            step,
            learningRate: criticLearningRate,
            trajectories,
            values,
            returns: cut(estimated.returns),
          }),
        )
      : [];
  const options = makePolicyLossOptions(actor, session.rollout.responseLength);
  const isOnPolicy = !algorithm.rollout_correction.bypass_mode;
  const updates =
    learningRate !== null
      ? await clock.time("update_actor", () =>
          updateActor(session, { step, learningRate, groups, lossMasks, batch, options, isOnPolicy }),
        )
      : [];

  const metrics = collectMetrics({
    trajectories,
    conversations: rollouts.trajectories,
    failures,
    rewards: sumTokens(offsets, tokenLevelRewards, responseMask),
    responseMask,
    estimated,
    values: values ? join(values) : null,
    scores,
    penalty,
    // With bypass_mode the sampler was compared with itself.
    correction: algorithm.rollout_correction.bypass_mode ? {} : correction.metrics,
    genBatches: algorithm.filter_groups.enable ? collected.genBatches : null,
    updates,
    criticUpdates,
    learningRate,
    seconds: clock.seconds(),
    step,
    epoch,
    config,
  });
  if (critic) metrics["critic/lr"] = criticLearningRate;
  return { trajectories: rollouts.trajectories, metrics };
}
