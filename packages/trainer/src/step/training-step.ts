import {
  type AdvantageInputs,
  type AdvantageOutputs,
  penalizeRewards,
  type RewardPart,
  resampleByScore,
} from "@cria/algorithms";
import { hashSeed, makeUniform, type TrainSequence, type Trajectory } from "@cria/core";
import type { DatasetRow } from "@cria/rollout";
import { countSteps } from "../run/count-steps.js";
import type { Session } from "../run/session-type.js";
import { collectMetrics, type StepMetrics } from "./collect-metrics.js";
import { collectRollouts, rollOutGreedily } from "./collect-rollouts.js";
import { type CorrectedRollouts, correctRollouts } from "./correct-rollouts.js";
import { scoreValues, updateCritic } from "./critic.js";
import { joinTokens, layOutTokens, sumTokens } from "./flat-tokens.js";
import { computeLearningRate } from "./learning-rate.js";
import { leaveOutGroupsWithoutBaseline } from "./leave-out-failures.js";
import { makePolicyLossOptions, needsEveryTrajectory } from "./policy-loss-options.js";
import { readReward } from "./read-reward.js";
import { scoreTrajectories, type TokenScores } from "./score-trajectories.js";
import { Stopwatch } from "./stopwatch.js";
import { updateActor } from "./update-actor.js";

export interface StepResult {
  /** Of the step's prompts, those that failed too. */
  trajectories: Trajectory[];
  /** Of each, the mean over its sampled tokens; null where the step learned nothing from it. */
  advantages: (number | null)[];
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
  const { config, klController, critic, registries } = session;
  const { algorithm } = config;
  const { actor } = config.actor_rollout_ref;
  const clock = new Stopwatch();
  const estimate = registries.advantageEstimators.get(algorithm.adv_estimator);
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
      type: registries.klEstimates.get(algorithm.kl_penalty),
      coefficient,
    });
    tokenLevelRewards = penalized.tokenLevelRewards;
    penalty = { kl: penalized.kl, coefficient };
    klController.update(penalized.kl, trajectories.length);
  }

  // 5. Advantages of every sampled token, from a critic's values where there is one.
  const values =
    critic && !isEmpty ? await clock.time("values", () => scoreValues(session, critic, trajectories)) : null;
  let correction: CorrectedRollouts | null = null;
  if (estimate.needs?.includes("sumPiSquared") && !isEmpty) {
    await score(() => true);
    correction = correctRollouts(trajectories, scores, algorithm);
  }
  const { weights: isWeights } = correction ?? {};
  const estimateOf = (inputs: AdvantageInputs) => (isEmpty ? nothing : estimate(inputs));
  const estimated = clock.timeSync("adv", () =>
    estimateOf({
      tokenLevelRewards,
      responseMask,
      offsets,
      groups,
      values: values ? join(values) : undefined,
      baselines: greedyRewards ? trajectories.map((t) => greedyRewards.get(t.uid)!) : undefined,
      oldLogprobs: correction ? join(trajectories.map((_, i) => scores.get(i)?.oldLogprobs)) : undefined,
      sumPiSquared: correction ? join(trajectories.map((_, i) => scores.get(i)?.sumPiSquared)) : undefined,
      rolloutIsWeights: isWeights ? join(trajectories.map((_, i) => isWeights.get(i))) : undefined,
      rewardParts: estimate.needs?.includes("rewardParts") ? readRewardParts(trajectories, algorithm) : undefined,
      gamma: algorithm.gamma,
      lam: algorithm.lam,
      normalizeByStd: algorithm.norm_adv_by_std_in_grpo,
    }),
  );
  const cut = (flat: Float32Array) => trajectories.map((_, i) => flat.subarray(offsets[i]!, offsets[i + 1]!));
  const advantages = cut(estimated.advantages);

  // 6. Logprobs of what the update needs: nothing while the critic warms up. A trajectory without advantage usually has no
  //    gradient, and is not evaluated.
  const needsAll = needsEveryTrajectory(config, registries);
  const used = new Set(await score((i) => isWarm && (needsAll || advantages[i]!.some((a) => Math.abs(a) > 1e-8))));

  // 7. Weights and rejections for what separates the sampler from the training graph.
  correction ??= correctRollouts(trajectories, scores, algorithm);

  // 8. The batch: per-token columns for the loss.
  const batch = new Map<number, TrainSequence>();
  for (const index of used) {
    const { oldLogprobs, refLogprobs } = scores.get(index)!;
    const lossMask = correction.lossMasks.get(index)!;
    const rolloutIsWeights = correction.weights?.get(index);
    if (!lossMask.includes(1)) continue;
    batch.set(index, {
      tokenIds: trajectories[index]!.tokenIds,
      lossMask,
      columns: {
        advantages: advantages[index]!,
        oldLogprobs,
        ...(refLogprobs ? { refLogprobs } : {}),
        ...(rolloutIsWeights ? { rolloutIsWeights } : {}),
      },
    });
  }

  // 9. What is trained on: all, or with PF-PPO as many, drawn anew by their scores.
  const taught = algorithm.use_pf_ppo ? drawByScore(session, trajectories, step) : [...trajectories.keys()];
  const lossMasks = taught.map((i): ArrayLike<number> => correction.lossMasks.get(i) ?? trajectories[i]!.responseMask);
  const taughtBatch = new Map(taught.flatMap((i, k) => (batch.has(i) ? [[k, batch.get(i)!]] : [])));

  // 10. Updates in mini-batches of prompts: the critic's, then the actor's once the critic is warm.
  const total = countSteps(session);
  const criticLearningRate = computeLearningRate(config.critic.optim, step, total);
  // The actor's schedule begins with its first update, after the critic's warm-up, and ends with the run.
  const frozen = critic?.warmup ?? 0;
  const learningRate = isWarm ? computeLearningRate(actor.optim, step - frozen, total - frozen) : null;
  const returns = cut(estimated.returns);
  const criticUpdates =
    critic && values
      ? await clock.time("update_critic", () =>
          updateCritic(session, critic, {
            step,
            learningRate: criticLearningRate,
            trajectories: taught.map((i) => trajectories[i]!),
            values: taught.map((i) => values[i]!),
            returns: taught.map((i) => returns[i]!),
          }),
        )
      : [];
  const options = makePolicyLossOptions(config, session.rollout.responseLength);
  const isOnPolicy = !algorithm.rollout_correction.bypass_mode;
  const updates =
    learningRate !== null
      ? await clock.time("update_actor", () =>
          updateActor(session, {
            step,
            learningRate,
            groups: taught.map((i) => groups[i]!),
            lossMasks,
            batch: taughtBatch,
            options,
            isOnPolicy,
          }),
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
    correction: correction.metrics,
    taught: algorithm.use_pf_ppo ? taught : null,
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
  const meanAdvantages: (number | null)[] = rollouts.trajectories.map(() => null);
  indices.forEach((original, i) => {
    meanAdvantages[original] = averageSampled(advantages[i]!, trajectories[i]!.responseMask);
  });
  return { trajectories: rollouts.trajectories, advantages: meanAdvantages, metrics };
}

function averageSampled(values: Float32Array, responseMask: Uint8Array): number | null {
  const sampled = values.filter((_, t) => responseMask[t] === 1);
  return sampled.length > 0 ? sampled.reduce((sum, value) => sum + value, 0) / sampled.length : null;
}

/** The values that gdpo_reward_keys names, each with its weight. */
function readRewardParts(
  trajectories: readonly Trajectory[],
  { gdpo_reward_keys: keys, gdpo_reward_weights: weights }: Session["config"]["algorithm"],
): RewardPart[] {
  return (keys ?? []).map((name, k) => ({
    values: trajectories.map((t) => readReward(t, name, "algorithm.gdpo_reward_keys")),
    weight: weights?.[k] ?? 1,
  }));
}

function drawByScore({ config }: Session, trajectories: readonly Trajectory[], step: number): number[] {
  const { reweight_method: method, weight_pow: weightPow } = config.algorithm.pf_ppo;
  const random = makeUniform(hashSeed(config.actor_rollout_ref.rollout.seed, step, "pf_ppo"));
  return resampleByScore(
    trajectories.map((t) => t.reward),
    { method, weightPow },
    random,
  );
}
