import type { ClusterView } from "./cluster-view.js";

export type LivePhase = "loading" | "rollout" | "scoring" | "training" | "validation" | "saving" | "idle";

/**
 * Present state of a running training: `live.json` in its folder, written about once a second; of the viewer, `GET
 * /api/runs/:run/live`.
 */
export interface LiveState {
  /** Time of writing, in milliseconds since 1970. */
  at: number;
  /** Id of the training process. */
  process: number;
  /** Current step, and the total number of steps. */
  step: number;
  total: number;
  phase: LivePhase;
  /** Conversations of the current rollouts or validation. */
  conversations: { done: number; generating: number; waitingForTools: number; total: number };
  /** Sampled tokens per second over the last seconds; in supervised fine-tuning trained ones. */
  tokensPerSecond: number;
  /**
   * Seconds of the run so far. While a step waits for its conversations: `decoding`, one of them generates;
   * `waitingForTools`, none of any step generates, and some wait for tools; `waitingForGroups`, the rest.
   */
  seconds: {
    decoding: number;
    waitingForTools: number;
    waitingForGroups: number;
    scoring: number;
    training: number;
    validation: number;
    other: number;
  };
  /** Updates between the policy that samples the current step and the one that learns from it; 0 without a lag. */
  staleness: number;
  /** Seconds until the last step; null before the first is done. */
  eta: number | null;
  /** Null: one process does all the work. */
  cluster: ClusterView | null;
}
