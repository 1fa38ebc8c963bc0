import type { ContentPart } from "@cria/core";
import type { ToolFailure } from "./loop-counters.js";

/** What became of one call of a tool. */
export interface ToolOutcome {
  /** All texts of the answer. */
  text: string;
  /** Where it has images: texts and images in their order. */
  parts?: readonly ContentPart[];
  reward: number;
  /** As the tool named them. */
  metrics: Record<string, number>;
  /** Its name of the environment's state, where it gave one. */
  state?: string;
  /** The tool's reward was no number, or too large for sums, and counts as 0. */
  hasBadReward?: boolean;
  failure?: ToolFailure;
  /** Names what the policy cannot see. It follows the text, and stays when the text is cut. */
  omitted?: { text: string; count: number };
}

/** The answer to a call that gave no ordinary one. */
export function failCall(failure: ToolFailure, text: string): ToolOutcome {
  return { text, reward: 0, metrics: {}, failure };
}
