import type { PolicyEngine, Trajectory } from "@cria/core";
import { type DatasetRow, type DumpContext, type DumpLine, describeTrajectories } from "@cria/rollout";
import type { Environment } from "../task/environment.js";

export interface DumpOptions extends Pick<DumpContext, "advantages" | "tokenDetails" | "times"> {
  /** Of the training; null: there is none. */
  step: number | null;
  /** Among them those that the trajectories came from. */
  rows: readonly DatasetRow[];
}

/** Trajectories as the lines of a dump. */
export function dumpTrajectories(
  engine: Pick<PolicyEngine, "detokenize">,
  { tools }: Pick<Environment, "tools">,
  trajectories: readonly Trajectory[],
  options: DumpOptions,
): DumpLine[] {
  return describeTrajectories(trajectories, {
    ...options,
    tools,
    detokenize: (tokenIds) => engine.detokenize(tokenIds),
  });
}
