import type { Trajectory } from "@cria/core";

/** A conversation that has ended and was not judged yet. */
export interface UnjudgedTrajectory extends Omit<Trajectory, "reward" | "rewards"> {
  /** The agent loop's own judgement; null when it has none. */
  score: number | null;
  /** Sum over the tools of calcReward; null when no tool has one, or one failed. */
  toolScore: number | null;
  /** The interaction's calculateScore; null when there was no interaction, or it failed. */
  interactionScore: number | null;
  /** Why one of them failed. */
  scoreError?: string;
}
