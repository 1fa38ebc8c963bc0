import { existsSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { posix } from "node:path";
import { CheckpointStore } from "../checkpoints/checkpoint-store.js";
import { findFirstValidation } from "../checkpoints/first-validation.js";
import type { RunFolder } from "../checkpoints/run-folder.js";
import type { TrainConfig } from "../config/train-config.js";
import type { Report } from "../events.js";
import type { Coordination } from "./training-bus.js";

/** Files of its folder that a resumed run reads, beside a checkpoint and its first validation. */
const RUN_FILES = ["config.json", "metrics.jsonl", "trackers.json"];

/** Name of a run on a bus: the same on every machine, wherever its folder is. */
export const nameSharedRun = ({ trainer }: TrainConfig): string => `${trainer.project_name}/${trainer.experiment_name}`;

/**
 * Puts a committed checkpoint on the bus, if the config asks for it. If the bus does not keep it, a warning is
 * reported.
 */
export async function shareCheckpoint(
  { config, coordination }: { config: TrainConfig; coordination: Coordination | null },
  { folder, step, report }: { folder: RunFolder; step: number; report?: Report },
): Promise<void> {
  if (!coordination || !config.cluster.share_checkpoints) return;
  try {
    const files = await listFiles(folder, step);
    await coordination.saveCheckpoint({ run: nameSharedRun(config), step, folder: folder.path, files });
  } catch (error) {
    const text = `the checkpoint of step ${step} is not on the bus: a standby with another disk would go on from an older one`;
    report?.({ type: "warning", text: `${text}\n  ${error instanceof Error ? error.message : error}` });
  }
}

/** Paths within the run folder. */
async function listFiles(folder: RunFolder, step: number): Promise<string[]> {
  const checkpoint = posix.relative(folder.path, new CheckpointStore(folder.path).folderOf(step));
  const names = (await readdir(folder.file(checkpoint), { recursive: true })).map((name) =>
    posix.join(checkpoint, name),
  );
  const state = names.filter((name) => statSync(folder.file(name)).isFile());
  const first = findFirstValidation(folder.file("validation"));
  const others = first === null ? RUN_FILES : [...RUN_FILES, `validation/${first}`];
  return [...others.filter((name) => existsSync(folder.file(name))), ...state];
}
