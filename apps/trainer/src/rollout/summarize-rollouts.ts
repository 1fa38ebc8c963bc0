import { type FinishReason, hasFailed, type Trajectory } from "@cria/core";

interface Spread {
  mean: number;
  min: number;
  max: number;
}

export interface RolloutSummary {
  rows: number;
  trajectories: number;
  /** Conversations that failed or could not be judged: rewards and turns are without them. */
  failed: number;
  first_error?: string;
  /** null when every conversation failed. */
  reward: Spread | null;
  by_data_source: Record<string, { mean: number; count: number }>;
  turns: Spread | null;
  finish_reasons: Partial<Record<FinishReason, number>>;
  /** Sums over the trajectories. */
  metrics: Record<string, number>;
  response_tokens: number;
  seconds: number;
  /** Sampled tokens. */
  tokens_per_second: number;
}

export function summarizeRollouts(trajectories: readonly Trajectory[], seconds: number): RolloutSummary {
  const metrics: Record<string, number> = {};
  const finish_reasons: RolloutSummary["finish_reasons"] = {};
  const sources: Record<string, { mean: number; count: number }> = {};
  for (const t of trajectories) {
    finish_reasons[t.finishReason] = (finish_reasons[t.finishReason] ?? 0) + 1;
    for (const [name, value] of Object.entries(t.metrics)) metrics[name] = (metrics[name] ?? 0) + value;
    if (hasFailed(t)) continue;
    sources[t.dataSource] ??= { mean: 0, count: 0 };
    const source = sources[t.dataSource]!;
    source.count++;
    source.mean += (t.reward - source.mean) / source.count;
  }
  const judged = trajectories.filter((t) => !hasFailed(t));
  const firstError = trajectories.find((t) => t.error !== undefined)?.error;
  return {
    rows: new Set(trajectories.map((t) => t.rowIndex)).size,
    trajectories: trajectories.length,
    failed: trajectories.length - judged.length,
    ...(firstError === undefined ? {} : { first_error: firstError }),
    reward: spread(judged.map((t) => t.reward)),
    by_data_source: sources,
    turns: spread(judged.map((t) => t.numTurns)),
    finish_reasons,
    metrics,
    response_tokens: trajectories.reduce((sum, t) => sum + t.tokenIds.length - t.promptLength, 0),
    seconds,
    tokens_per_second: (metrics.decode_tokens ?? 0) / Math.max(1e-9, seconds),
  };
}

function spread(values: readonly number[]): Spread | null {
  if (values.length === 0) return null;
  const total = values.reduce((sum, value) => sum + value, 0);
  return {
    mean: total / values.length,
    min: values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY),
    max: values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY),
  };
}
