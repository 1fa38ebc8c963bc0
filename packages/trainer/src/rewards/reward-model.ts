import type { RewardRequest } from "@cria/rollout";

export interface ModelScore {
  score: number;
  /** What the model wrote, for the dump; absent where it wrote nothing. */
  verdict?: string;
}

/** Scores one finished conversation. */
export interface RewardModel {
  /**
   * May reject, or resolve with anything, once `signal` aborts.
   * @throws JudgementError when this conversation cannot be scored; any other error ends the run.
   */
  score(request: RewardRequest, signal: AbortSignal): Promise<ModelScore>;
  dispose?(): Promise<void>;
}

/** Scores the conversations of one prompt, by comparing them. */
export interface GroupRewardModel {
  /**
   * One score for each request; all have one `uid`. May reject, or resolve with anything, once `signal` aborts.
   * @throws JudgementError when the group cannot be scored; any other error ends the run.
   */
  scoreGroup(group: readonly RewardRequest[], signal: AbortSignal): Promise<ModelScore[]>;
  dispose?(): Promise<void>;
}

/** A conversation could not be scored, but others may be: it counts as failed (`rollout.on_failure`). */
export class JudgementError extends Error {
  constructor(
    message: string,
    /** The text of the model, if that text is wrong. */
    readonly verdict?: string,
  ) {
    super(message);
  }
}
