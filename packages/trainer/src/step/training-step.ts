import { type AdvantageInputs, penalizeRewards, type RewardPart, resampleByScore } from "@cria/algorithms";
import { creditMultiTrajectories, creditNodes, usesReference } from "@cria/algorithms/internal";
import { hashSeed, makeUniform, type TrainResult, type Trajectory } from "@cria/core";
import type { TokenDetails } from "@cria/records";
import type { AlgorithmOptions } from "../config/options/algorithm.js";
import { type MakeBatchOptions, makeBatch } from "../policy/batch.js";
import { joinTokens, layOutTokens, sumTokens } from "../policy/flat-tokens.js";
import { listPolicies, ofRole, type Role } from "../policy/of-role.js";
import { toCandidates } from "../policy/teacher-candidates.js";
import type { TokenScores } from "../policy/token-scores.js";
import { hasAdvantage, type SequenceScores } from "../policy/update-policy.js";
import type { ReplayedGroup } from "../replay-buffer/replay-buffer.js";
import type { StepMetrics } from "../step-metrics.js";
import { ConversationStates } from "../timing/conversation-states.js";
import { Stopwatch } from "../timing/stopwatch.js";
import { cutTokens, estimateAdvantages } from "./advantages.js";
import { collectMetrics, collectRoleMetrics } from "./collect-metrics.js";
import { readReward, type SampledStep } from "./collect-rollouts.js";
import { correctRollouts, type StepCorrection } from "./correct-rollouts.js";
import { scoreValues, updateCritic } from "./critic.js";
import { leaveOutGroupsWithoutBaseline } from "./groups.js";
import { measureGuidance } from "./guidance.js";
import { ImageMeter } from "./image-metrics.js";
import { computeLearningRate, countSteps } from "./learning-rate.js";
import { measureUpdate } from "./measure-update.js";
import { needsEveryTrajectory } from "./needs-every-trajectory.js";
import { chooseOldLogprobs, findGreatestDifference, type OldLogprobsSource, readUpdate } from "./old-logprobs.js";
import { measureReplayed, replayGroups } from "./replayed-groups.js";
import { type SampleInputs, sampleStep } from "./sample-step.js";
import { measureStaleness, stalenessOf } from "./schedule.js";
import { scoreTrajectories } from "./score-trajectories.js";
import type { StepParts } from "./step-parts.js";
import { measureTrees } from "./tree-metrics.js";

export interface StepResult {
  /** Trajectories of the step's prompts, including failed ones. */
  trajectories: Trajectory[];
  /** Trajectories of groups that `filter_groups` replaced or did not need. */
  leftOut: Trajectory[];
  /** Mean advantage over the sampled tokens of each trajectory; null if the step did not learn from it. */
  advantages: (number | null)[];
  /** Values computed for each trajectory's tokens: logprobs, entropy, advantages. */
  tokenDetails: TokenDetails[];
  metrics: StepMetrics;
}

export interface StepInputs extends SampleInputs {
  /** Number of the epoch, from 0. */
  epoch: number;
  /** The step's conversations if they were started earlier; default: they start now. */
  sampled?: Promise<SampledStep>;
  /** Called with the name of each measured part of the step when it starts: `timing_s/<name>`. */
  onWork?: (name: string) => void;
  /**
   * States of the training's conversations, which `onState` or who began `sampled` reports to it: they divide the time
   * that the step waits. Default: those of this step, without an `onState`.
   */
  conversations?: ConversationStates;
  /** Clock, in milliseconds; default: the process's. */
  now?: () => number;
  /** Draws groups of earlier steps to learn from again, given the number of the step's own groups; default: none. */
  replay?: (own: number) => readonly ReplayedGroup[];
}

/** Implements `runTrainingStep` of when-called.ts. */
export async function runTrainingStep(parts: StepParts, inputs: StepInputs): Promise<StepResult> {
  const { settings, registries, policy, environment, critic, teachers, klController, estimatorState, trainRows } =
    parts;
  const { coordination, signal } = parts;
  const { step, epoch, onWork } = inputs;
  const { algorithm, seed, loss, updates: update } = settings;
  const { temperature } = settings.sampling;
  const { branchCredit, rewards } = settings.environment;
  const { responseLength } = environment;
  const { bypass } = settings.correction;
  const conversations = inputs.conversations ?? new ConversationStates();
  const clock = new Stopwatch({
    onWork,
    now: inputs.now,
    conversations: { onChange: conversations.onChange, activity: () => conversations.activity(step) },
  });
  const imageMeter = new ImageMeter(policy.engine.images);
  const estimator = registries.advantageEstimators.get(algorithm.advantages);
  const needs = new Set(estimator.needs);
  const isWarm = !critic || step > critic.warmup;

  // 1. Roll out conversations of each prompt. If they were started earlier, only the time spent waiting for them is
  // counted.
  const begun = inputs.sampled;
  const onState = inputs.onState ?? conversations.watch(step);
  const collected = await (begun ? clock.time("gen", () => begun) : sampleStep(parts, { ...inputs, onState }, clock));
  const { greedyRewards } = collected;

  // 2. While judges are working, compute the logprobs of all conversations: which of them have an advantage is not
  // known yet.
  const scoring = {
    temperature,
    sumPiSquared: needs.has("sumPiSquared"),
    reference: usesReference(settings.loss) || algorithm.useKlInReward,
    teachers,
    signal,
    compute: coordination?.score,
  };
  const isReplaying = inputs.replay !== undefined;
  const early = new Map<number, TokenScores>();
  let source: OldLogprobsSource | null = null;
  if (collected.isJudging && isWarm) {
    const { conversations } = collected;
    const sampled = [...conversations.keys()].filter((i) => conversations[i]!.responseMask.includes(1));
    const asked = chooseOldLogprobs(parts, { trajectories: conversations, isReplaying }, Number.POSITIVE_INFINITY);
    // A teacher that reads corrections scores later, once the judges have said them.
    const options = { ...scoring, source: asked, teachers: teachers?.readsCorrections ? null : teachers };
    await scoreTrajectories(policy, conversations, sampled, early, options, clock);
    // Trajectories evaluated while judges were working are not evaluated again.
    if (early.size > 0) source = asked;
  }
  const rollouts = await (collected.isJudging ? clock.time("reward", collected.finish) : collected.finish());

  // 3. Leave out failed conversations; no later part of the step uses them.
  const { indices, failures } = leaveOutGroupsWithoutBaseline(rollouts, rollouts.trajectories, greedyRewards);
  const trajectories = indices.map((i) => rollouts.trajectories[i]!);
  const isEmpty = trajectories.length === 0;
  const scores = new Map<number, TokenScores>();
  indices.forEach((original, index) => {
    if (early.has(original)) scores.set(index, early.get(original)!);
  });

  // 4. Concatenate the per-token rewards of the others; with `useKlInReward` subtract the KL to the reference.
  const offsets = layOutTokens(trajectories);
  const join = (arrays: readonly (ArrayLike<number> | null | undefined)[]) => joinTokens(offsets, arrays);
  const responseMask = join(trajectories.map((t) => t.responseMask));
  const taught = algorithm.filtration ? drawByScore(trajectories, algorithm.filtration, seed, step) : undefined;
  const groups = new Set((taught ?? [...trajectories.keys()]).map((i) => trajectories[i]!.uid)).size;
  const oldSource = source ?? chooseOldLogprobs(parts, { trajectories, isReplaying }, groups);
  /** The step's own trajectories, followed by those of replayed groups. */
  let learned: readonly Trajectory[] = trajectories;
  const score = async (isWanted: (index: number) => boolean) => {
    const indices = [...learned.keys()].filter((i) => learned[i]!.responseMask.includes(1) && isWanted(i));
    await scoreTrajectories(policy, learned, indices, scores, { ...scoring, source: oldSource }, clock);
    return indices;
  };
  let tokenLevelRewards = join(trajectories.map((t) => t.rewards.tokenLevel));
  let penalty: { kl: number; coefficient: number } | null = null;
  if (algorithm.useKlInReward && !isEmpty) {
    await score(() => true);
    const { coefficient } = klController;
    const penalized = penalizeRewards({
      tokenLevelScores: tokenLevelRewards,
      oldLogprobs: join(trajectories.map((_, i) => scores.get(i)?.oldLogprobs)),
      refLogprobs: join(trajectories.map((_, i) => scores.get(i)?.refLogprobs)),
      responseMask,
      offsets,
      type: registries.klEstimates.get(algorithm.klPenalty),
      coefficient,
    });
    tokenLevelRewards = penalized.tokenLevelRewards;
    penalty = { kl: penalized.kl, coefficient };
    klController.update(penalized.kl, trajectories.length);
  }

  // 5. Estimate the advantage of every sampled token, using a critic's values if there is a critic.
  const values =
    critic && !isEmpty
      ? await clock.time("values", () => scoreValues(critic, trajectories, policy.engine, signal))
      : null;
  let correction: StepCorrection | null = null;
  if (needs.has("sumPiSquared") && !isEmpty) {
    await score(() => true);
    correction = correctRollouts(trajectories, scores, settings.correction);
  }
  const { weights: isWeights } = correction ?? {};
  const joinScores = (pick: (scores: TokenScores) => Float32Array | null) =>
    join(trajectories.map((_, i) => (scores.has(i) ? pick(scores.get(i)!) : null)));
  const told: Partial<AdvantageInputs> = {
    gamma: algorithm.gamma,
    lam: algorithm.lam,
    normalizeByStd: algorithm.normalizeByStd,
    turnWeight: algorithm.advantages === "mt_grpo" ? algorithm.turnAdvantageWeight : algorithm.stepAdvantageWeight,
    baselineDecay: algorithm.raeDecay,
    // Other strategies spread the outcome over the tokens, so that estimators must use the token-level rewards.
    ...(rewards.aggregation.strategy === "last_token" ? {} : { episodeRewards: undefined }),
  };
  const readParts = (of: readonly Trajectory[]) =>
    needs.has("rewardParts") ? readRewardParts(of, algorithm) : undefined;
  const estimate = (of: readonly Trajectory[], given: Partial<AdvantageInputs>) => {
    if (branchCredit === "nodes") return creditNodes(of, given);
    if (branchCredit === "multi_trajectories") return creditMultiTrajectories(of, given);
    return estimateAdvantages(estimator, of, given);
  };
  const given: Partial<AdvantageInputs> = {
    tokenLevelRewards,
    values: values ? join(values) : undefined,
    baselines: greedyRewards ? trajectories.map((t) => greedyRewards.get(t.uid)!) : undefined,
    oldLogprobs: correction ? joinScores(({ oldLogprobs }) => oldLogprobs) : undefined,
    sumPiSquared: correction ? joinScores(({ sumPiSquared }) => sumPiSquared) : undefined,
    rolloutIsWeights: isWeights ? join(trajectories.map((_, i) => isWeights.get(i))) : undefined,
    turnValues: needs.has("turnValues") ? trajectories.map(({ turnValues }) => turnValues ?? []) : undefined,
    rewardParts: readParts(trajectories),
    state: estimatorState.current,
    ...told,
  };
  const estimated = clock.timeSync("adv", () => estimate(trajectories, given));
  estimatorState.current = estimated.state ?? estimatorState.current;
  // Replayed groups move no state: they did when they were new.
  const replayed = replayGroups(inputs.replay, trajectories, (group) =>
    estimate(group, { rewardParts: readParts(group), state: estimatorState.current, ...told }),
  );
  learned = [...trajectories, ...replayed.trajectories];
  const advantages = [...cutTokens(trajectories, estimated.advantages), ...replayed.advantages];
  const isOwn = (index: number) => index < trajectories.length;

  // 6. Compute the logprobs that the update needs: none while the critic warms up. A trajectory without advantage
  // usually has no gradient, and is not evaluated.
  const needsAll = !update.skipZeroAdvantage || needsEveryTrajectory(settings, registries);
  const used = new Set(await score((i) => isWarm && (needsAll || hasAdvantage(advantages[i]!))));

  // Only logprobs computed here can check the workers'; with bypass_mode they are the sampler's own.
  if (!bypass)
    coordination?.checkLogprobs(
      [...scores].filter(([i]) => isOwn(i)).map(([i, { oldLogprobs }]) => ({ ...trajectories[i]!, oldLogprobs })),
      stalenessOf(step, settings),
    );

  // 7. Correct for the difference between the sampler and the training graph: importance weights and rejections. If
  // neither is configured this only measures the difference, possibly from the update's own pass.
  let corrected = correction ?? correctRollouts(learned, scores, settings.correction);

  // 8. Update in mini-batches of prompts: the critic first, then the actor once the critic is warm. Its batch has
  // per-token columns for the loss, of all trajectories or, with PF-PPO, of as many drawn by their scores.
  const total = countSteps(settings, trainRows.length);
  const criticLearningRate = computeLearningRate(settings.critic, step, total);
  // The actor's schedule starts with its first update, after the critic's warm-up, and ends with the run.
  const frozen = critic?.warmup ?? 0;
  const learningRate = isWarm ? computeLearningRate(update, step - frozen, total - frozen) : null;
  const returns = cutTokens(trajectories, estimated.returns);
  const pick = <T>(values: readonly T[]) => (taught ? taught.map((i) => values[i]!) : [...values]);
  const criticUpdates =
    critic && values
      ? await clock.time("update_critic", () =>
          updateCritic(
            critic,
            {
              step,
              seed,
              learningRate: criticLearningRate,
              responseLength,
              trajectories: pick(trajectories),
              values: pick(values),
              returns: pick(returns),
            },
            policy.engine,
          ),
        )
      : [];
  const isSeen = oldSource !== "pass" || update.oldLogprobs === "compare";
  /** True if the update weighs tokens by the old logprobs that its own pass gives. */
  const weighsItself = oldSource === "update" && settings.correction.rolloutIs !== null;
  const policies = listPolicies(policy);
  const updates = new Map<Role, TrainResult[]>();
  /** By the own pass of the first update, which has the weights that sampled. */
  const seenLogprobs = new Map<number, Float32Array>();
  /** By the own pass of the update that learns from a trajectory first. */
  const seenEntropies = new Map<number, Float32Array>();
  // With an adapter for each role, each learns from the tokens that it sampled.
  for (const [role, learner] of learningRate === null ? [] : policies) {
    const shown = learned.map((trajectory) => ofRole(trajectory, role));
    const own = role === null ? corrected : correctRollouts(shown, pickPlayed(scores, shown), settings.correction);
    const batch = makeBatch(shown, {
      advantages,
      taught,
      ...weighConversations(parts, learned),
      temperature,
      responseLength,
      scores: {
        used,
        lossMask: (i) => own.lossMasks.get(i) ?? shown[i]!.responseMask,
        columns: (i) => {
          const { oldLogprobs, refLogprobs, teacherLogprobs } = scores.get(i)!;
          const teacherWeights =
            teacherLogprobs && (teachers?.weigh(learned[i]!, oldLogprobs, teacherLogprobs) ?? null);
          const rolloutIsWeights = own.weights?.get(i);
          return {
            ...(oldSource === "update" ? {} : { oldLogprobs }),
            ...(refLogprobs ? { refLogprobs } : {}),
            ...(teacherLogprobs ? { teacherLogprobs } : {}),
            ...(teacherWeights ? { teacherWeights } : {}),
            ...(weighsItself ? { rolloutLogprobs: learned[i]!.rolloutLogprobs } : {}),
            ...(rolloutIsWeights && !weighsItself ? { rolloutIsWeights } : {}),
          };
        },
        candidates: (i) => {
          const { teacherLikeliest } = scores.get(i)!;
          return teacherLikeliest ? toCandidates(teacherLikeliest) : undefined;
        },
      },
    });
    const seen = new Map<number, readonly SequenceScores[]>();
    let seenFirst: ReadonlyMap<number, readonly SequenceScores[]> = seen;
    const results = await clock.time("update_actor", () =>
      learner.train(batch, loss, {
        step,
        seed,
        learningRate: learningRate!,
        betas: update.betas,
        weightDecay: update.weightDecay,
        maxGradNorm: update.maxGradNorm,
        miniBatchSize: Math.ceil(update.miniBatchSize * replayed.growth),
        epochs: update.epochs,
        shuffle: update.shuffle,
        microBatchTokens: update.microBatchTokens ?? undefined,
        isOnPolicy: !bypass,
        ...(weighsItself ? { correction: settings.correction } : {}),
        demonstrations: parts.demonstrations ?? undefined,
        ...(isSeen
          ? {
              onScores: (found) => {
                const read = readSeen(found, taught);
                if (seen.size === 0) seenFirst = read;
                for (const [index, scores] of read) seen.set(index, scores);
              },
            }
          : {}),
        algorithms: registries,
        beforeStep: coordination?.publish,
        compute: coordination?.compute,
      }),
    );
    updates.set(role, results);
    addTokens(
      seenLogprobs,
      readUpdate(seenFirst, shown, ({ logprobs }) => logprobs),
    );
    addTokens(
      seenEntropies,
      readUpdate(seen, shown, ({ entropy }) => entropy),
    );
  }

  if (oldSource !== "pass") {
    // A later update's entropies are those of its weights.
    for (const [index, entropy] of seenEntropies) {
      const scored = scores.get(index)!;
      const oldLogprobs = oldSource === "update" ? seenLogprobs.get(index)! : scored.oldLogprobs;
      scores.set(index, { ...scored, oldLogprobs, entropy });
    }
  }
  if (oldSource === "update") corrected = correctRollouts(learned, scores, settings.correction);
  const oldLogprobs = new Map([...scores].map(([index, { oldLogprobs }]) => [index, oldLogprobs]));
  /** Logprobs of the training graph with the weights that sampled. */
  const trained = bypass ? null : oldSource === "sampler" ? seenLogprobs : oldLogprobs;

  // 9. Measure how far the updates moved the policy.
  const { updateKlRatio: ratio } = update;
  const updateKls = new Map<Role, number>();
  for (const [role, learner] of policies) {
    if (!updates.get(role)?.length || ratio <= 0) continue;
    const shown = learned.map((trajectory) => ofRole(trajectory, role));
    const measured = {
      trajectories: shown,
      scores: role === null ? scores : pickPlayed(scores, shown),
      ratio,
      temperature,
    };
    const kl = await clock.time("update_kl", () => measureUpdate(learner, measured));
    if (kl !== null) updateKls.set(role, kl);
  }

  const ownScores = new Map([...scores].filter(([i]) => isOwn(i)));
  const seconds = clock.seconds();
  const metrics = collectMetrics({
    trajectories,
    conversations: rollouts.trajectories,
    leftOut: rollouts.leftOut,
    failures,
    rewards: sumTokens(offsets, tokenLevelRewards, responseMask),
    responseMask,
    estimated,
    values: values ? join(values) : null,
    scores: ownScores,
    trainedLogprobs: trained && new Map([...trained].filter(([i]) => isOwn(i))),
    penalty,
    correction: corrected.metrics,
    taught: taught ?? null,
    genBatches: algorithm.filterGroups ? collected.genBatches : null,
    updates: [...updates.values()].flat(),
    updateKl: updateKls.size > 0 ? [...updateKls.values()].reduce((a, b) => a + b) / updateKls.size : null,
    criticUpdates,
    learningRate,
    seconds,
    times: clock.divideStep(seconds),
    step,
    epoch,
    settings,
  });
  for (const [role, results] of updates)
    if (role !== null)
      Object.assign(
        metrics,
        collectRoleMetrics(role, {
          trajectories: trajectories.map((trajectory) => ofRole(trajectory, role)),
          scores: ownScores,
          updates: results,
          updateKl: updateKls.get(role) ?? null,
          learningRate,
          settings,
        }),
      );
  Object.assign(metrics, imageMeter.measure(rollouts.trajectories), coordination?.takeMetrics());
  const turns = rollouts.trajectories.map(({ timeline }) => timeline?.turns ?? []);
  Object.assign(metrics, measureStaleness(step, settings, turns));
  Object.assign(metrics, measureTrees(rollouts.trajectories));
  Object.assign(metrics, measureGuidance(step, settings.distillation, turns));
  Object.assign(metrics, teachers?.measureCorrections(trajectories));
  metrics["training/old_log_prob_pass"] = oldSource === "pass" && scores.size > 0 ? 1 : 0;
  if (seenLogprobs.size > 0 && oldSource === "pass")
    metrics["training/old_log_prob_diff_max"] = findGreatestDifference(seenLogprobs, oldLogprobs, learned);
  if (inputs.replay) Object.assign(metrics, measureReplayed(replayed, corrected.weights, trajectories.length));
  if (critic) metrics["critic/lr"] = criticLearningRate;
  const meanAdvantages: (number | null)[] = rollouts.trajectories.map(() => null);
  const tokenDetails = rollouts.trajectories.map((_, original) => detailTokens(early.get(original), null));
  indices.forEach((original, i) => {
    meanAdvantages[original] = averageSampled(advantages[i]!, trajectories[i]!.responseMask);
    tokenDetails[original] = detailTokens(scores.get(i), advantages[i]!);
  });
  const { trajectories: all, leftOut } = rollouts;
  return { trajectories: all, leftOut, advantages: meanAdvantages, tokenDetails, metrics };
}

/** Weights of conversations in the terms of the loss: those of their rows, and 0 for a teacher that says nothing. */
function weighConversations(
  { lossWeights, teachers }: Pick<StepParts, "lossWeights" | "teachers">,
  learned: readonly Trajectory[],
): Pick<MakeBatchOptions, "lossWeights"> {
  const weighs = teachers?.readsCorrections ?? false;
  if (!lossWeights && !weighs) return {};
  return {
    lossWeights: (i) => {
      const own = lossWeights?.get(learned[i]!.rowIndex);
      return weighs && !teachers!.teaches(learned[i]!) ? { ...own, teacher: 0 } : own;
    },
  };
}

/** Scores of the trajectories with tokens in the mask. */
function pickPlayed(scores: ReadonlyMap<number, TokenScores>, shown: readonly Pick<Trajectory, "responseMask">[]) {
  return new Map([...scores].filter(([i]) => shown[i]!.responseMask.includes(1)));
}

/** Adds values of a role's tokens, which are 0 elsewhere, to those of the other roles' tokens. */
function addTokens(values: Map<number, Float32Array>, own: ReadonlyMap<number, Float32Array>): void {
  for (const [index, added] of own) {
    const before = values.get(index);
    values.set(index, before ? before.map((value, t) => value + added[t]!) : added);
  }
}

/**
 * Maps indices of the batch to indices of trajectories; PF-PPO's batch has only some trajectories, some of them twice.
 */
function readSeen(
  found: ReadonlyMap<number, readonly SequenceScores[]>,
  taught: readonly number[] | undefined,
): Map<number, readonly SequenceScores[]> {
  return new Map([...found].map(([k, sequences]) => [taught ? taught[k]! : k, sequences]));
}

function detailTokens(scores: TokenScores | undefined, advantages: Float32Array | null): TokenDetails {
  const { oldLogprobs = null, refLogprobs = null, teacherLogprobs = null, entropy = null } = scores ?? {};
  return { oldLogprobs, refLogprobs, teacherLogprobs, entropy, advantages };
}

function averageSampled(values: Float32Array, responseMask: Uint8Array): number | null {
  const sampled = values.filter((_, t) => responseMask[t] === 1);
  return sampled.length > 0 ? sampled.reduce((sum, value) => sum + value, 0) / sampled.length : null;
}

/** Reads the values named by gdpo_reward_keys, each with its weight. */
function readRewardParts(
  trajectories: readonly Trajectory[],
  { gdpoRewardKeys: keys, gdpoRewardWeights: weights }: AlgorithmOptions,
): RewardPart[] {
  return (keys ?? []).map((name, k) => ({
    values: trajectories.map((t) => readReward(t, name, "algorithm.gdpo_reward_keys")),
    weight: weights?.[k] ?? 1,
  }));
}

function drawByScore(
  trajectories: readonly Trajectory[],
  options: NonNullable<AlgorithmOptions["filtration"]>,
  seed: number,
  step: number,
): number[] {
  const random = makeUniform(hashSeed(seed, step, "pf_ppo"));
  return resampleByScore(
    trajectories.map((t) => t.reward),
    options,
    random,
  );
}
