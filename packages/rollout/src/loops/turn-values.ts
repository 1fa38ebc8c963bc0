import { hasFailed, type Trajectory } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";

/** Measurement of the values of turns. */
export interface TurnValueOptions {
  /** Number of conversations that go on from the end of each turn, at least 1. */
  continuations: number;
  /** Maximum number of tokens that such a conversation adds; null: the rest of the response. */
  maxTokens: number | null;
}

/** The engine's counters of a conversation. */
const work = ["decode_tokens", "prefill_tokens", "reused_tokens"] as const;

/**
 * Adds the values of a conversation's turns: of each the mean reward of the conversations that went on from its end.
 * What the engine did for them counts as the conversation's, and `continuations` and `continuation_tokens` count them
 * apart.
 * @param measured of the end of each turn at which the conversation went on, what went on from there. Failed ones do
 * not count.
 */
export function addTurnValues(
  ended: UnjudgedTrajectory,
  measured: readonly (readonly Trajectory[])[],
): UnjudgedTrajectory {
  const turnValues = measured.map((continued) => {
    const rewards = continued.filter((trajectory) => !hasFailed(trajectory)).map(({ reward }) => reward);
    return rewards.length > 0 ? rewards.reduce((a, b) => a + b, 0) / rewards.length : null;
  });
  const all = measured.flat();
  const metrics: Record<string, number> = { ...ended.metrics, continuations: all.length, continuation_tokens: 0 };
  for (const continued of all) {
    metrics.continuation_tokens! += continued.metrics.decode_tokens ?? 0;
    for (const name of work) metrics[name] = (metrics[name] ?? 0) + (continued.metrics[name] ?? 0);
  }
  return { ...ended, turnValues, metrics };
}
