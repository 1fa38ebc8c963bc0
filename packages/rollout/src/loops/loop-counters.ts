/** Kinds of failed tool calls; each is a counter `tool_<failure>`. */
export const toolFailures = [
  "invalid_call",
  "unknown_tool",
  "unavailable",
  "invalid_arguments",
  "timeout",
  "exception",
  "bad_response",
  "bad_image",
] as const;
export type ToolFailure = (typeof toolFailures)[number];

/**
 * Counters of the tool agent loop per conversation, in `Trajectory.metrics`. A missing counter is 0. docs/metrics.md
 * explains each.
 */
export const loopCounters = [
  "tool_calls",
  "tool_errors",
  ...toolFailures.map((failure) => `tool_${failure}` as const),
  "tool_bad_reward",
  "tool_create_exception",
  "tool_reward_exception",
  "tool_release_exception",
  "tool_truncated",
  "tool_media_omitted",
  "too_many_calls",
  "cut_turns",
  "interaction_turns",
  "interaction_bad_score",
  "interaction_score_exception",
  "interaction_finalize_exception",
  "rewritten_turns",
  "rewritten_tokens",
  "tokenization_mismatch",
  "tokenization_drift",
  "tokenization_unchecked",
  "tokenization_other_end",
  "tokenization_rewritten",
  "tokenization_unsplit",
  "rescored_tokens",
] as const;

/** Measures in seconds, and in tokens of the engine. */
export const loopMeasures = [
  "generate_s",
  "tool_s",
  "interaction_s",
  "prefill_tokens",
  "reused_tokens",
  "decode_tokens",
] as const;

/**
 * Names in `Trajectory.metrics`. Metrics of tools and interactions are summed over their answers under names of
 * their own, which cannot collide with the loop's counters: `tool/<tool>/<metric>`, with the counts
 * `tool_answers/<tool>` and `tool_errors/<tool>`, and `tool_s/<tool>`, the seconds spent in calls.
 */
export type LoopMetric =
  | (typeof loopCounters)[number]
  | (typeof loopMeasures)[number]
  | `tool_errors/${string}`
  | `tool_s/${string}`
  | `${"tool" | "interaction"}_answers/${string}`
  | `${"tool" | "interaction"}/${string}/${string}`;
