/** Names for the metrics that a newcomer meets. Their keys are in tooltips, and in docs/metrics.md. */
const WORDS: Record<string, string> = {
  "reward/score/mean": "Score in training",
  "reward_extra/acc/mean": "Success in training",
  "reward_extra/success/mean": "Success in training",
  "critic/score/mean": "Score in training",
  "critic/rewards/mean": "Reward in training",
  "critic/rewards/frac_zero_std": "Groups without a signal",
  "actor/entropy": "Entropy: how undecided it is",
  "actor/ppo_kl": "Distance of an update (KL)",
  "actor/grad_norm": "Size of the gradient",
  "actor/pg_loss": "Loss of the policy",
  "actor/lr": "Learning rate",
  "response_length/mean": "Tokens of a conversation",
  "response_length/clip_ratio": "Conversations cut at the limit",
  "num_turns/mean": "Turns of a conversation",
  "agent_loop/tool_error_rate": "Tool calls that failed",
  "tool_call_counts/mean": "Tool calls of a conversation",
  "perf/throughput": "Tokens a second",
  "perf/time_per_step": "Seconds of a step",
  "train/loss": "Loss in training",
  "train/grad_norm": "Size of the gradient",
  "train/lr": "Learning rate",
  "val/loss": "Loss, held out",
};

/** A metric in words; its key if it has none. */
export function nameMetric(key: string): string {
  const heldOut = /^val-core\/(.*)\/(acc|reward)\/mean@\d+$/.exec(key);
  if (heldOut) return `Held-out ${heldOut[2] === "acc" ? "success" : "reward"} of ${heldOut[1]}`;
  return WORDS[key] ?? key;
}

/** A metric in words with its key, for choosing among all of them. */
export function describeMetric(key: string): string {
  const words = nameMetric(key);
  return words === key ? key : `${words} (${key})`;
}
