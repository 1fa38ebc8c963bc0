import type { ContentPart } from "@cria/core";
import type { ToolFailure } from "./loop-counters.js";

/** Result of one tool call. */
export interface ToolOutcome {
  /** All texts of the answer. */
  text: string;
  /** For an answer with images: texts and images in order. */
  parts?: readonly ContentPart[];
  reward: number;
  /** Metrics under the tool's own names. */
  metrics: Record<string, number>;
  /** The tool's name for the environment's state, if given. */
  state?: string;
  /** True if the tool's reward is no usable number; it then counts as 0. */
  hasBadReward?: boolean;
  failure?: ToolFailure;
  /** Names of media that the policy cannot see. The text is appended to the answer and survives truncation. */
  omitted?: { text: string; count: number };
}

/** The outcome of a failed call. */
export function failCall(failure: ToolFailure, text: string): ToolOutcome {
  return { text, reward: 0, metrics: {}, failure };
}
