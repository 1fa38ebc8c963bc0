import { ToolError, type Trajectory } from "@cria/core";
import type { DatasetRow } from "../data/dataset-row.js";
import { nameSample } from "../rewards/reward-request.js";

/**
 * What happens when the environment or the judge breaks a conversation. "drop": it is left out of everything. "refill":
 * it is sampled again with another seed, three times at most, then dropped. "error": it ends the run.
 */
export type OnFailure = "drop" | "refill" | "error";

export function makeFailureError(row: DatasetRow, { sampleIndex, error }: Trajectory): ToolError {
  return new ToolError("failed, and actor_rollout_ref.rollout.on_failure is error", {
    code: "rollout/failed",
    subject: nameSample(row, sampleIndex),
    expected: "a conversation that reaches its end and is judged",
    received: error ?? "it was aborted",
    remedy: "repair it; with on_failure drop such conversations are left out, with refill they are sampled again",
  });
}

/** The error for rollouts in which nobody called the policy. @param agents names of the agents that were to. */
export function makeNeverCalledError(subject: string, agents: readonly string[], conversations: number): ToolError {
  return new ToolError("did not call the policy", {
    code: "rollout/never-called",
    subject: `${subject}: agent ${agents.map((name) => `"${name}"`).join(", ")}`,
    expected:
      "calls of the model that the agent is given: `model` or `session`, for a program OPENAI_BASE_URL or ANTHROPIC_BASE_URL",
    received: `none in ${conversations} conversations`,
    remedy: "put that model in the place of the agent's own: agent: ({ model }) => ... generateText({ model, ... })",
  });
}

/** The error for rollouts that all failed, with the first causes. @param subject what they were for. */
export function makeAllFailedError(subject: string, trajectories: readonly Trajectory[]): ToolError {
  const causes = new Map<string, string>();
  for (const { rowIndex, sampleIndex, error = "it was aborted" } of trajectories)
    if (!causes.has(error)) causes.set(error, `row ${rowIndex}, sample ${sampleIndex}: ${error}`);
  return new ToolError("every conversation failed", {
    code: "rollout/all-failed",
    subject,
    expected: `some of ${trajectories.length} conversations that reach their end and are judged`,
    received: [...causes.values()].slice(0, 3).join("\n  and: "),
    remedy: "repair the environment or the reward",
  });
}
