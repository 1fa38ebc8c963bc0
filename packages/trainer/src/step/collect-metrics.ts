import { type AdvantageOutputs, explainVariance } from "@cria/algorithms";
import type { TrainResult, Trajectory } from "@cria/core";
import { peakMemory } from "@cria/core/internal";
import { averageExtras } from "@cria/rollout/internal";
import type { Settings } from "../config/import/settings.js";
import { countOnes } from "../policy/flat-tokens.js";
import type { TokenScores } from "../policy/token-scores.js";
import type { StepMetrics } from "../step-metrics.js";
import type { StepTimes } from "../timing/step-times.js";
import { type FailureCounts, makeFailureMetrics } from "./groups.js";
import { averageLoopMetrics, averageToolSeconds, countGroupsWithoutSpread } from "./loop-metrics.js";

export interface MetricInputs {
  /** The trajectories that the step learns from, without failed ones. */
  trajectories: readonly Trajectory[];
  /**
   * All trajectories of the step, including failed ones. Metrics about work are computed from these, metrics about the
   * policy from `trajectories`.
   */
  conversations: readonly Trajectory[];
  /** Trajectories that were sampled for the step and left out of it, by filter_groups for instance: work without use. */
  leftOut: readonly Trajectory[];
  failures: FailureCounts;
  /** Sum of each trajectory's token-level rewards, after subtraction of the KL if it is part of the reward. */
  rewards: readonly number[];
  /** Concatenated over all trajectories, as `estimated` is. */
  responseMask: ArrayLike<number>;
  estimated: AdvantageOutputs;
  /** Values by the critic, concatenated over all trajectories; null without a critic. */
  values: ArrayLike<number> | null;
  /** Scores by index of trajectory. */
  scores: ReadonlyMap<number, TokenScores>;
  /**
   * Logprobs by the training graph with the weights that sampled, by index of trajectory, to compare the sampler's
   * with; null with bypass_mode.
   */
  trainedLogprobs: ReadonlyMap<number, Float32Array> | null;
  /** The KL in the reward and its coefficient; null without a KL penalty. */
  penalty: { kl: number; coefficient: number } | null;
  /** Metrics of the rollout correction. */
  correction: Record<string, number>;
  /** Indices of the trajectories in the batch, some of them twice; null without PF-PPO. */
  taught: readonly number[] | null;
  /** Number of prompt batches rolled out; null without dynamic sampling. */
  genBatches: number | null;
  updates: readonly TrainResult[];
  /** KL between the policy before and after the updates; null if it was not measured. */
  updateKl: number | null;
  criticUpdates: readonly TrainResult[];
  /** The actor's learning rate; null while the critic warms up. */
  learningRate: number | null;
  /** Seconds by measured part of the step. */
  seconds: Record<string, number>;
  /** The parts of the step's wall time. */
  times: StepTimes;
  step: number;
  epoch: number;
  settings: Pick<Settings, "loss" | "correction" | "environment">;
}

export function collectMetrics(inputs: MetricInputs): StepMetrics {
  const { trajectories, conversations, seconds, settings } = inputs;
  const metrics: StepMetrics = { "training/global_step": inputs.step, "training/epoch": inputs.epoch };
  const spread = (name: string, values: readonly number[]) => {
    if (values.length === 0) return;
    metrics[`${name}/mean`] = mean(values);
    metrics[`${name}/max`] = values.reduce((a, b) => Math.max(a, b));
    metrics[`${name}/min`] = values.reduce((a, b) => Math.min(a, b));
  };
  const share = (name: string, bits: readonly number[]) => {
    if (bits.length > 0) metrics[name] = mean(bits);
  };
  const sampled = (values: ArrayLike<number>) => Array.from(values).filter((_, t) => inputs.responseMask[t]);
  const responseLengths = trajectories.map((t) => t.tokenIds.length - t.promptLength);
  const promptLengths = trajectories.map((t) => t.promptLength);
  spread(
    "critic/score",
    trajectories.map((t) => t.reward),
  );
  spread("critic/rewards", inputs.rewards);
  Object.assign(metrics, averageRewardParts(trajectories), describeScoreParts(trajectories));
  Object.assign(metrics, makeFailureMetrics(inputs.failures, trajectories.length));
  spread("rollout/samples", countByPrompt(conversations));
  const withoutSpread = countGroupsWithoutSpread(
    trajectories.map((t) => t.uid),
    inputs.rewards,
  );
  if (withoutSpread !== null) metrics["critic/rewards/frac_zero_std"] = withoutSpread;
  for (const [key, value] of Object.entries(averageExtras(trajectories))) metrics[`reward_extra/${key}/mean`] = value;
  spread("critic/advantages", sampled(inputs.estimated.advantages));
  spread("critic/returns", sampled(inputs.estimated.returns));
  if (inputs.values) spread("critic/values", sampled(inputs.values));
  for (const [name, value] of Object.entries(inputs.estimated.metrics)) metrics[`critic/${name}`] = value;
  spread("response_length", responseLengths);
  share(
    "response_length/clip_ratio",
    trajectories.map((t) => (t.finishReason === "length" ? 1 : 0)),
  );
  const whole = trajectories.filter((t) => t.finishReason !== "aborted");
  spread(
    "response_length_non_aborted",
    whole.map((t) => t.tokenIds.length - t.promptLength),
  );
  share(
    "response_length_non_aborted/clip_ratio",
    whole.map((t) => (t.finishReason === "length" ? 1 : 0)),
  );
  spread("prompt_length", promptLengths);
  share(
    "prompt_length/clip_ratio",
    promptLengths.map((n) => (n >= settings.environment.maxPromptLength ? 1 : 0)),
  );
  metrics["response/aborted_ratio"] = mean(conversations.map((t) => (t.finishReason === "aborted" ? 1 : 0)));
  share(
    "response/turn_limit_ratio",
    trajectories.map((t) => (t.finishReason === "tool_calls" ? 1 : 0)),
  );
  spread(
    "num_turns",
    trajectories.map((t) => t.numTurns),
  );
  spread(
    "tool_call_counts",
    trajectories.map((t) => t.metrics.tool_calls ?? 0),
  );
  Object.assign(metrics, averageLoopMetrics(conversations));

  addActorMetrics(metrics, inputs);
  addCriticMetrics(metrics, inputs);
  addRolloutComparison(metrics, inputs);
  for (const [name, value] of Object.entries(inputs.correction)) metrics[`rollout_corr/${name}`] = value;
  if (inputs.genBatches !== null) metrics["train/num_gen_batches"] = inputs.genBatches;
  if (inputs.taught)
    metrics["train/pf_ppo_kept_ratio"] = new Set(inputs.taught).size / Math.max(1, inputs.taught.length);

  for (const [name, value] of Object.entries(seconds)) metrics[`timing_s/${name}`] = value;
  for (const [name, value] of Object.entries(inputs.times)) metrics[`timing_s/wall/${name}`] = value;
  for (const [name, key] of [
    ["generate_sequences", "generate_s"],
    ["tool_calls", "tool_s"],
    ["interactions", "interaction_s"],
  ] as const) {
    spread(
      `timing_s/agent_loop/${name}`,
      trajectories.map((t) => t.metrics[key] ?? 0),
    );
  }
  Object.assign(metrics, averageToolSeconds(conversations));
  const totalTokens = conversations.reduce((sum, t) => sum + t.tokenIds.length, 0);
  const all = [...conversations, ...inputs.leftOut];
  const sum = (name: string) => all.reduce((total, t) => total + (t.metrics[name] ?? 0), 0);
  metrics["engine/decode_tokens"] = sum("decode_tokens");
  metrics["engine/prefill_tokens"] = sum("prefill_tokens");
  metrics["engine/reused_tokens"] = sum("reused_tokens");
  const responseTokens = all.reduce((total, t) => total + t.tokenIds.length - t.promptLength, 0);
  for (const name of ["gen", "ref", "teacher", "values", "adv", "update_critic", "update_actor"]) {
    if (seconds[name] === undefined) continue;
    const tokens = name === "gen" ? responseTokens : totalTokens;
    metrics[`timing_per_token_ms/${name}`] = (1000 * seconds[name]) / Math.max(1, tokens);
  }
  metrics["perf/total_num_tokens"] = totalTokens;
  metrics["perf/time_per_step"] = seconds.step ?? 0;
  metrics["perf/throughput"] = totalTokens / Math.max(1e-9, seconds.step ?? 0);
  Object.assign(metrics, measureMemory());
  return metrics;
}

/**
 * Memory of this process in GiB: the peak resident size and the current one. On the CPU this includes everything that a
 * run uses; GPU memory is not included. By convention "allocated" is the tensors' part of the memory that an allocator
 * has reserved. There is no such allocator here, so both metrics are the process's peak.
 */
function measureMemory(): StepMetrics {
  const mostGb = peakMemory() / 2 ** 30;
  return {
    "perf/max_memory_allocated_gb": mostGb,
    "perf/max_memory_reserved_gb": mostGb,
    "perf/cpu_memory_used_gb": process.memoryUsage.rss() / 2 ** 30,
  };
}

/** Counts the conversations of each prompt. */
function countByPrompt(conversations: readonly Trajectory[]): number[] {
  const counts = new Map<string, number>();
  for (const { uid } of conversations) counts.set(uid, (counts.get(uid) ?? 0) + 1);
  return [...counts.values()];
}

/** Means of the score and of the parts of the reward. The parts, without the score, add up to `critic/score/mean`. */
function averageRewardParts(trajectories: readonly Trajectory[]): StepMetrics {
  if (trajectories.length === 0) return {};
  const parts = ["score", "outcome", "length", "tools", "turns"] as const;
  return Object.fromEntries(
    parts.map((part) => [`reward/${part}/mean`, mean(trajectories.map((t) => t.rewards[part]!))]),
  );
}

/**
 * Mean and standard deviation of each weighted part of scores with several parts. The standard deviation is over all
 * conversations.
 */
function describeScoreParts(trajectories: readonly Trajectory[]): StepMetrics {
  const values = new Map<string, number[]>();
  for (const { rewards } of trajectories) {
    if (rewards.parts.length < 2) continue;
    for (const { name, value, weight } of rewards.parts) {
      const list = values.get(name) ?? [];
      list.push(weight * value);
      values.set(name, list);
    }
  }
  const metrics: StepMetrics = {};
  for (const [name, list] of values) {
    const average = mean(list);
    metrics[`reward_part/${name}/mean`] = average;
    metrics[`reward_part/${name}/std`] = Math.sqrt(mean(list.map((value) => (value - average) ** 2)));
  }
  return metrics;
}

/** Metrics of the loss that are about the teacher. */
const teacherNames: Readonly<Record<string, string>> = {
  teacher_loss: "distillation/loss",
  teacher_divergence: "distillation/divergence",
  teacher_mass: "distillation/teacher_mass",
  student_mass: "distillation/student_mass",
};

type ActorInputs = Pick<
  MetricInputs,
  "updates" | "updateKl" | "learningRate" | "penalty" | "scores" | "trajectories"
> & { settings: Pick<Settings, "loss"> };

/** The actor's metrics of a role with an adapter of its own, as role/<role>/<name>. */
export function collectRoleMetrics(role: string, inputs: Omit<ActorInputs, "penalty">): StepMetrics {
  const metrics: StepMetrics = {};
  addActorMetrics(metrics, { ...inputs, penalty: null });
  const own = Object.entries(metrics).filter(([name]) => name.startsWith("actor/"));
  return Object.fromEntries(own.map(([name, value]) => [name.replace("actor", `role/${role}`), value]));
}

/** Adds the loss's metrics, averaged over the updates. */
function addActorMetrics(
  metrics: StepMetrics,
  { updates, updateKl, learningRate, penalty, scores, trajectories, settings }: ActorInputs,
) {
  const { kl } = settings.loss;
  if (updates.length > 0) {
    const names = new Set(["pg_loss", "pg_clipfrac", "pg_clipfrac_lower", "ppo_kl"]);
    for (const update of updates) for (const name of Object.keys(update.metrics)) names.add(name);
    for (const name of names) {
      // The correction that bypass_mode makes inside the loss uses the metric names of the correction before the loss.
      const path = name.startsWith("rollout_corr/") ? name : (teacherNames[name] ?? `actor/${name}`);
      metrics[path] = mean(updates.map((u) => u.metrics[name] ?? 0));
    }
    if (kl) metrics["actor/kl_coef"] = kl.coefficient;
    metrics["actor/grad_norm"] = mean(updates.map((u) => u.gradNorm));
    const sum = (key: "evaluatedTokens" | "paddingTokens") => updates.reduce((total, update) => total + update[key], 0);
    metrics["perf/padding_ratio"] = sum("paddingTokens") / Math.max(1, sum("evaluatedTokens"));
  }
  if (updateKl !== null) metrics["actor/update_kl"] = updateKl;
  // Entropy over all evaluated tokens, before the update that learns from them first, not the average over updates.
  const entropies: number[] = [];
  for (const [index, { entropy }] of scores) {
    const { responseMask } = trajectories[index]!;
    if (entropy) for (let t = 0; t < responseMask.length; t++) if (responseMask[t]) entropies.push(entropy[t]!);
  }
  if (entropies.length > 0) metrics["actor/entropy"] = mean(entropies);
  if (learningRate !== null) metrics["actor/lr"] = learningRate;
  if (!penalty) return;
  metrics["actor/reward_kl_penalty"] = penalty.kl;
  metrics["actor/reward_kl_penalty_coeff"] = penalty.coefficient;
}

function addCriticMetrics(
  metrics: StepMetrics,
  { criticUpdates, values, estimated, responseMask }: MetricInputs,
): void {
  if (values) metrics["critic/vf_explained_var"] = explainVariance(values, estimated.returns, responseMask);
  if (criticUpdates.length === 0) return;
  for (const name of ["vf_loss", "vf_clipfrac", "vpred_mean"])
    metrics[`critic/${name}`] = mean(criticUpdates.map((u) => u.metrics[name] ?? 0));
  metrics["critic/grad_norm"] = mean(criticUpdates.map((u) => u.gradNorm));
}

/**
 * Adds the difference between the sampler's and the training graph's probabilities, and the share of sampled tokens
 * that it covers.
 */
function addRolloutComparison(
  metrics: StepMetrics,
  { trajectories, responseMask, trainedLogprobs }: MetricInputs,
): void {
  if (!trainedLogprobs) return;
  const actor: number[] = [];
  const rollout: number[] = [];
  for (const [index, logprobs] of trainedLogprobs) {
    const { responseMask, rolloutLogprobs } = trajectories[index]!;
    for (let t = 0; t < responseMask.length; t++) {
      if (!responseMask[t]) continue;
      actor.push(Math.exp(logprobs[t]!));
      rollout.push(Math.exp(rolloutLogprobs[t]!));
    }
  }
  metrics["training/evaluated_ratio"] = actor.length / Math.max(1, countOnes(responseMask));
  metrics["training/rollout_probs_diff_valid"] = actor.length > 0 ? 1 : 0;
  if (actor.length === 0) return;
  const differences = actor.map((p, i) => Math.abs(p - rollout[i]!));
  const average = mean(differences);
  metrics["training/rollout_probs_diff_mean"] = average;
  metrics["training/rollout_probs_diff_max"] = differences.reduce((a, b) => Math.max(a, b), 0);
  const squares = differences.reduce((sum, d) => sum + (d - average) ** 2, 0);
  metrics["training/rollout_probs_diff_std"] = Math.sqrt(squares / Math.max(1, differences.length - 1));
  metrics["training/rollout_actor_probs_pearson_corr"] = correlate(actor, rollout);
}

/** Pearson's correlation; 1 if an input is constant, because then nothing varies in disagreement. */
function correlate(a: readonly number[], b: readonly number[]): number {
  const [meanA, meanB] = [mean(a), mean(b)];
  const covariance = mean(a.map((x, i) => (x - meanA) * (b[i]! - meanB)));
  const scale = Math.sqrt(mean(a.map((x) => (x - meanA) ** 2)) * mean(b.map((x) => (x - meanB) ** 2)));
  return scale > 0 ? covariance / scale : 1;
}

function mean(values: readonly number[]): number {
  return values.length > 0 ? values.reduce((a, b) => a + b, 0) / values.length : 0;
}
