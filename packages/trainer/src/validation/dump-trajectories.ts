import type { LoadedImage, PolicyEngine, Trajectory } from "@cria/core";
import { type DumpContext, type DumpLine, describeTrajectories, writeDump } from "@cria/records";
import type { DatasetRow } from "@cria/rollout";
import { guardRunWrite } from "../checkpoints/run-folder.js";
import type { Environment } from "../task/environment.js";

export interface DumpOptions extends Pick<DumpContext, "advantages" | "tokenDetails" | "times"> {
  /** Training step; null: no training. */
  step: number | null;
  /** Rows, including those of the trajectories. */
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

/** Writes a dump atomically, with its images beside it. @throws DataError */
export function saveDump(path: string, lines: readonly DumpLine[], images: readonly LoadedImage[]): Promise<void> {
  return guardRunWrite(path, () => writeDump(path, lines, images));
}

/** The images of trajectories, one entry for each occurrence. */
export function listShown(trajectories: readonly Pick<Trajectory, "images">[]): LoadedImage[] {
  return trajectories.flatMap(({ images = [] }) => images.map(({ image }) => image));
}
