import type { ScoreResult, TrainResult, Trajectory } from "@cria/core";
import { averageExtras } from "@cria/rollout";
import type { TrainConfig } from "../config/train-config.js";

/** Metrics of one step by their names in the field. */
export type StepMetrics = Record<string, number>;

export interface MetricInputs {
  trajectories: readonly Trajectory[];
  /** Sum of each trajectory's token-level rewards. */
  rewards: readonly number[];
  advantages: ArrayLike<number>;
  /** Trajectories that were scored; `old` is in the same order. */
  used: readonly number[];
  old: readonly ScoreResult[];
  updates: readonly TrainResult[];
  learningRate: number;
  seconds: Record<string, number>;
  step: number;
  epoch: number;
  config: TrainConfig;
}

export function collectMetrics(inputs: MetricInputs): StepMetrics {
  const { trajectories, updates, seconds, config } = inputs;
  const metrics: StepMetrics = { "training/global_step": inputs.step, "training/epoch": inputs.epoch };
  const spread = (name: string, values: readonly number[]) => {
    metrics[`${name}/mean`] = mean(values);
    metrics[`${name}/max`] = Math.max(...values);
    metrics[`${name}/min`] = Math.min(...values);
  };
  const responseLengths = trajectories.map((t) => t.tokenIds.length - t.promptLength);
  const promptLengths = trajectories.map((t) => t.promptLength);
  spread(
    "critic/score",
    trajectories.map((t) => t.extraFields.score as number),
  );
  spread("critic/rewards", inputs.rewards);
  for (const [key, value] of Object.entries(averageExtras(trajectories))) metrics[`reward_extra/${key}/mean`] = value;
  spread("critic/advantages", Array.from(inputs.advantages));
  spread("response_length", responseLengths);
  metrics["response_length/clip_ratio"] = mean(trajectories.map((t) => (t.finishReason === "length" ? 1 : 0)));
  spread("prompt_length", promptLengths);
  metrics["prompt_length/clip_ratio"] = mean(promptLengths.map((n) => (n >= config.data.max_prompt_length ? 1 : 0)));
  metrics["response/aborted_ratio"] = mean(trajectories.map((t) => (t.finishReason === "aborted" ? 1 : 0)));
  spread(
    "num_turns",
    trajectories.map((t) => t.numTurns),
  );
  spread(
    "tool_call_counts",
    trajectories.map((t) => t.metrics.tool_calls ?? 0),
  );

  const average = (name: string) => mean(updates.map((u) => u.metrics[name] ?? 0));
  if (updates.length > 0) {
    for (const name of ["pg_loss", "pg_clipfrac", "pg_clipfrac_lower", "ppo_kl"])
      metrics[`actor/${name}`] = average(name);
    if (config.actor_rollout_ref.actor.use_kl_loss) {
      metrics["actor/kl_loss"] = average("kl_loss");
      metrics["actor/kl_coef"] = config.actor_rollout_ref.actor.kl_loss_coef;
    }
    metrics["actor/grad_norm"] = mean(updates.map((u) => u.gradNorm));
  }
  metrics["actor/lr"] = inputs.learningRate;
  addRolloutComparison(metrics, inputs);

  for (const [name, value] of Object.entries(seconds)) metrics[`timing_s/${name}`] = value;
  for (const [name, key] of [
    ["generate_sequences", "generate_s"],
    ["tool_calls", "tool_s"],
  ] as const) {
    spread(
      `timing_s/agent_loop/${name}`,
      trajectories.map((t) => t.metrics[key] ?? 0),
    );
  }
  const totalTokens = trajectories.reduce((sum, t) => sum + t.tokenIds.length, 0);
  const sum = (name: string) => trajectories.reduce((total, t) => total + (t.metrics[name] ?? 0), 0);
  metrics["engine/decode_tokens"] = sum("decode_tokens");
  metrics["engine/prefill_tokens"] = sum("prefill_tokens");
  metrics["engine/reused_tokens"] = sum("reused_tokens");
  metrics["timing_per_token_ms/gen"] =
    (1000 * (seconds.gen ?? 0)) /
    Math.max(
      1,
      responseLengths.reduce((a, b) => a + b, 0),
    );
  metrics["timing_per_token_ms/update_actor"] = (1000 * (seconds.update_actor ?? 0)) / Math.max(1, totalTokens);
  metrics["perf/total_num_tokens"] = totalTokens;
  metrics["perf/time_per_step"] = seconds.step ?? 0;
  metrics["perf/throughput"] = totalTokens / Math.max(1e-9, seconds.step ?? 0);
  return metrics;
}

/** How far the sampler's probabilities are from the training graph's; and the policy's entropy. */
function addRolloutComparison(metrics: StepMetrics, { trajectories, used, old }: MetricInputs): void {
  const differences: number[] = [];
  const entropies: number[] = [];
  const logDifferences: number[] = [];
  used.forEach((index, k) => {
    const { responseMask, rolloutLogprobs } = trajectories[index]!;
    for (let t = 0; t < responseMask.length; t++) {
      if (!responseMask[t]) continue;
      const trained = old[k]!.logprobs[t]!;
      differences.push(Math.abs(Math.exp(trained) - Math.exp(rolloutLogprobs[t]!)));
      logDifferences.push(rolloutLogprobs[t]! - trained);
      entropies.push(old[k]!.entropy?.[t] ?? 0);
    }
  });
  if (differences.length === 0) return;
  const average = mean(differences);
  metrics["actor/entropy"] = mean(entropies);
  metrics["training/rollout_probs_diff_mean"] = average;
  metrics["training/rollout_probs_diff_max"] = differences.reduce((a, b) => Math.max(a, b), 0);
  metrics["training/rollout_probs_diff_std"] = Math.sqrt(mean(differences.map((d) => (d - average) ** 2)));
  metrics["rollout_corr/kl"] = mean(logDifferences);
}

function mean(values: readonly number[]): number {
  return values.length > 0 ? values.reduce((a, b) => a + b, 0) / values.length : 0;
}
