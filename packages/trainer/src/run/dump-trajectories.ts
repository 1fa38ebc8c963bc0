import type { Trajectory } from "@cria/core";
import { type DatasetRow, type DumpContext, type DumpLine, describeTrajectories } from "@cria/rollout";
import type { Session } from "./session-type.js";

export interface DumpOptions extends Pick<DumpContext, "advantages" | "times"> {
  /** Of the training; null: there is none. */
  step: number | null;
  /** Among them those that the trajectories came from. */
  rows: readonly DatasetRow[];
}

/** A session's trajectories as the lines of a dump. */
export function dumpTrajectories(
  { engine, rollout }: Pick<Session, "engine" | "rollout">,
  trajectories: readonly Trajectory[],
  options: DumpOptions,
): DumpLine[] {
  return describeTrajectories(trajectories, {
    ...options,
    tools: rollout.tools,
    detokenize: (tokenIds) => engine.detokenize(tokenIds),
  });
}
