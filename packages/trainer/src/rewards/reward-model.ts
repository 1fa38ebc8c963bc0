import { CriaError, type ErrorDetails } from "@cria/core";
import type { RewardRequest } from "@cria/rollout";

export interface ModelScore {
  score: number;
  /** Text of the model, for the dump; absent if it wrote none. */
  verdict?: string;
}

/** Scores one finished conversation. */
export interface RewardModel {
  /**
   * May reject, or resolve with any value, once `signal` aborts.
   * @throws JudgementError when this conversation cannot be scored; any other error ends the run.
   */
  score(request: RewardRequest, signal: AbortSignal): Promise<ModelScore>;
  dispose?(): Promise<void>;
}

/** Scores the conversations of one prompt, by comparing them. */
export interface GroupRewardModel {
  /**
   * Returns one score per request; all requests have the same `uid`. May reject, or resolve with any value, once
   * `signal` aborts.
   * @throws JudgementError when the group cannot be scored; any other error ends the run.
   */
  scoreGroup(group: readonly RewardRequest[], signal: AbortSignal): Promise<ModelScore[]>;
  dispose?(): Promise<void>;
}

/**
 * This conversation could not be scored, but others may be: it counts as failed (`rollout.on_failure`). The message is
 * one line, because it stands in lists of failed conversations.
 */
export class JudgementError extends CriaError {
  /** Text of the model, if it caused the error. */
  readonly verdict: string | undefined;

  constructor(
    summary: string,
    { verdict, ...details }: Pick<ErrorDetails, "code" | "subject" | "cause"> & { verdict?: string },
  ) {
    super(summary, details);
    this.verdict = verdict;
  }
}
