import { advantageEstimators, correctRollout, penalizeRewards } from "@cria/algorithms";
import type { TrainSequence, Trajectory } from "@cria/core";
import type { DatasetRow } from "@cria/rollout";
import { makeRolloutCorrectionOptions } from "./algorithm-options.js";
import { collectMetrics, type StepMetrics } from "./collect-metrics.js";
import { collectRollouts, rollOutGreedily } from "./collect-rollouts.js";
import { countSteps } from "./count-steps.js";
import { scoreValues, updateCritic } from "./critic.js";
import { joinTokens, layOutTokens, sumTokens } from "./flat-tokens.js";
import { computeLearningRate } from "./learning-rate.js";
import { makePolicyLossOptions, needsEveryTrajectory } from "./policy-loss-options.js";
import { scoreTrajectories, type TokenScores } from "./score-trajectories.js";
import type { Session } from "./session-type.js";
import { Stopwatch } from "./stopwatch.js";
import { updateActor } from "./update-actor.js";

export interface StepResult {
  trajectories: Trajectory[];
  metrics: StepMetrics;
}

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

  // 2. Per-token arrays of all trajectories, end to end.
  const ended = collected.trajectories;
  const offsets = layOutTokens(ended);
  const join = (arrays: readonly (ArrayLike<number> | null | undefined)[]) => joinTokens(offsets, arrays);
  const responseMask = join(ended.map((t) => t.responseMask));
  const hasSampled = ended.map((t) => t.responseMask.includes(1));
  const scores = new Map<number, TokenScores>();
  const score = async (isWanted: (index: number) => boolean) => {
    const indices = [...ended.keys()].filter((i) => hasSampled[i] && isWanted(i));
    await scoreTrajectories(session, ended, indices, scores, clock);
    return indices;
  };

  // 3. Token-level rewards, less the KL to the reference where that is wanted. While reward models are at work the
  //    logprobs are recomputed, of all: which of them have an advantage is not known yet.
  if (collected.isJudging && isWarm) await score(() => true);
  const { trajectories, tokenLevelScores } = await collected.finish();
  let tokenLevelRewards = join(tokenLevelScores);
  let penalty: { kl: number; coefficient: number } | null = null;
  if (algorithm.use_kl_in_reward) {
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

  // 4. Advantages of every sampled token, from a critic's values where there is one.
  const values = critic ? await clock.time("values", () => scoreValues(session, critic, trajectories)) : null;
  const estimated = clock.timeSync("adv", () =>
    estimate({
      tokenLevelRewards,
      responseMask,
      offsets,
      groups: trajectories.map((t) => t.uid),
      values: values ? join(values) : undefined,
      baselines: greedyRewards ? trajectories.map((t) => greedyRewards.get(t.uid)!) : undefined,
      gamma: algorithm.gamma,
      lam: algorithm.lam,
      normalizeByStd: algorithm.norm_adv_by_std_in_grpo,
    }),
  );
  const cut = (flat: Float32Array) => trajectories.map((_, i) => flat.subarray(offsets[i]!, offsets[i + 1]!));
  const advantages = cut(estimated.advantages);

  // 5. Logprobs of what the update needs: nothing while the critic warms up. A trajectory without advantage usually has no
  //    gradient, and is not evaluated.
  const needsAll = needsEveryTrajectory(config);
  const used = await score((i) => isWarm && (needsAll || advantages[i]!.some((a) => Math.abs(a) > 1e-8)));

  // 6. Weights and rejections for what separates the sampler from the training graph.
  const usedOffsets = layOutTokens(used.map((i) => trajectories[i]!));
  const joinUsed = (pick: (index: number) => ArrayLike<number>) => joinTokens(usedOffsets, used.map(pick));
  const correction = correctRollout(
    {
      oldLogprobs: joinUsed((i) => scores.get(i)!.oldLogprobs),
      rolloutLogprobs: joinUsed((i) => trajectories[i]!.rolloutLogprobs),
      responseMask: joinUsed((i) => trajectories[i]!.responseMask),
      offsets: usedOffsets,
    },
    makeRolloutCorrectionOptions(algorithm),
  );

  // 7. The batch: per-token columns for the loss.
  const lossMasks: ArrayLike<number>[] = trajectories.map((t) => t.responseMask);
  const batch = new Map<number, TrainSequence>();
  used.forEach((index, k) => {
    const { tokenIds } = trajectories[index]!;
    const { oldLogprobs, refLogprobs } = scores.get(index)!;
    const [from, to] = [usedOffsets[k]!, usedOffsets[k + 1]!];
    const lossMask = correction.lossMask.subarray(from, to);
    const rolloutIsWeights = correction.weights?.subarray(from, to);
    lossMasks[index] = lossMask;
    if (!lossMask.includes(1)) return;
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

  // 8. Updates in mini-batches of prompts: the critic's, then the actor's once the critic is warm.
  const prompts = collected.rows.length;
  const learningRate = computeLearningRate(actor.optim, step, countSteps(session));
  const criticLearningRate = computeLearningRate(config.critic.optim, step, countSteps(session));
  const criticUpdates =
    critic && values
      ? await clock.time("update_critic", () =>
          updateCritic(session, critic, {
            step,
            learningRate: criticLearningRate,
            prompts,
            trajectories,
            values,
            returns: cut(estimated.returns),
          }),
        )
      : [];
  const options = makePolicyLossOptions(actor, session.rollout.responseLength);
  const isOnPolicy = !algorithm.rollout_correction.bypass_mode;
  const updates = isWarm
    ? await clock.time("update_actor", () =>
        updateActor(session, { step, learningRate, prompts, lossMasks, batch, options, isOnPolicy }),
      )
    : [];

  const metrics = collectMetrics({
    trajectories,
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
  return { trajectories, metrics };
}
