import { ToolError, type Trajectory } from "@cria/core";
import type { DatasetRow } from "../data/dataset-row.js";
import { nameSample } from "../rewards/reward-request.js";

/**
 * Policy for conversations that the environment or the judge breaks. "drop": exclude them. "refill": sample them
 * again with another seed, at most three times, then drop. "error": end the run.
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

/** Error for rollouts in which no agent called the policy. @param agents names of the agents. */
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

/** Error for rollouts that all failed, with the first causes. @param subject purpose of the rollouts. */
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
