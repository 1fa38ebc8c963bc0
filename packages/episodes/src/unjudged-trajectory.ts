import type { Trajectory } from "@cria/core";

/** An ended conversation that is not judged yet. */
export interface UnjudgedTrajectory extends Omit<Trajectory, "reward" | "rewards"> {
  /** The agent loop's own score; null: none. */
  score: number | null;
  /** Sum of the tools' calcReward; null if no tool has one, or one failed. */
  toolScore: number | null;
  /** The interaction's calculateScore; null if there is no interaction, or it failed. */
  interactionScore: number | null;
  /** Error of the tools' or the interaction's score. */
  scoreError?: string;
}
