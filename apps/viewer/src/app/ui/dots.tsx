import type { ConversationEntry } from "../../api/index.js";
import { formatNumber } from "../logic/format.js";

/** The colour of a reward, one of four, between the lowest and the highest shown. */
export function gradeReward(reward: number | null, low = 0, high = 1): string {
  if (reward === null) return "reward-none";
  const share = high > low ? (reward - low) / (high - low) : 1;
  return `reward-${share >= 0.999 ? 3 : share >= 0.5 ? 2 : share > 0.001 ? 1 : 0}`;
}

/** A conversation in a few words, for the tip of its dot. */
export function describeConversation(entry: ConversationEntry): string {
  return [
    `sample ${entry.sample}`,
    entry.failed ? "failed" : `reward ${formatNumber(entry.reward)}`,
    entry.advantage === null ? null : `advantage ${formatNumber(entry.advantage)}`,
    `${entry.turns} turns`,
    `${entry.sampled} sampled tokens`,
    entry.toolErrors > 0 ? `${entry.toolErrors} tool errors` : null,
    entry.finish,
  ]
    .filter(Boolean)
    .join(", ");
}
