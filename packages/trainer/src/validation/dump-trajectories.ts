import type { LoadedImage, PolicyEngine, Trajectory } from "@cria/core";
import { type DumpContext, type DumpLine, describeTrajectories, writeDump } from "@cria/records";
import type { DatasetRow } from "@cria/rollout";
import { guardRunWrite } from "../checkpoints/run-folder.js";
import type { Environment } from "../task/environment.js";

export interface DumpOptions extends Pick<DumpContext, "advantages" | "tokenDetails" | "times"> {
  /** Of the training; null: there is none. */
  step: number | null;
  /** Among them those that the trajectories came from. */
  rows: readonly DatasetRow[];
}

/** Trajectories as the lines of a dump. */
export function dumpTrajectories(
  engine: Pick<PolicyEngine, "detokenize" | "info">,
  { tools }: Pick<Environment, "tools">,
  trajectories: readonly Trajectory[],
  options: DumpOptions,
): DumpLine[] {
  return describeTrajectories(trajectories, { ...options, tools, engine });
}

/** Writes lines as a dump, whole or not at all, and their images beside it. @throws DataError */
export function saveDump(path: string, lines: readonly DumpLine[], images: readonly LoadedImage[]): Promise<void> {
  return guardRunWrite(path, () => writeDump(path, lines, images));
}

/** Each image of trajectories, as often as it is shown. */
export function listShown(trajectories: readonly Pick<Trajectory, "images">[]): LoadedImage[] {
  return trajectories.flatMap(({ images = [] }) => images.map(({ image }) => image));
}
