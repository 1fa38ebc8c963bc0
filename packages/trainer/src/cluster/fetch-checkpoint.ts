import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { ClusterError } from "@cria/core";
import { CheckpointStore } from "../checkpoints/checkpoint-store.js";
import { findRunPath, hasRun, moveAside } from "../checkpoints/open-run.js";
import { guardRunWrite } from "../checkpoints/run-folder.js";
import { RunLock } from "../checkpoints/run-lock.js";
import type { TrainConfig } from "../config/train-config.js";
import { makeSay, type Report } from "../events.js";
import { nameSharedRun } from "./share-checkpoint.js";
import type { StoredCheckpoint, TrainingBus } from "./training-bus.js";

interface FetchOptions {
  signal?: AbortSignal;
  report?: Report;
}

/**
 * Fetches the run's newest checkpoint from the bus into the run folder, if the config asks for it and the folder has
 * none as new. A damaged one causes a warning, and the run continues from the folder's own.
 * @throws DataError when the folder is in use or cannot be written; ClusterError when the bus does not answer; the
 * signal's reason.
 */
export async function fetchCheckpoint(
  bus: TrainingBus | undefined,
  config: TrainConfig,
  { signal, report }: FetchOptions = {},
): Promise<void> {
  const { resume_mode, max_actor_ckpt_to_keep } = config.trainer;
  if (!bus || !config.cluster.share_checkpoints || resume_mode !== "auto") return;
  const path = findRunPath(config);
  const lock = await RunLock.acquire(path);
  try {
    const store = new CheckpointStore(path, max_actor_ckpt_to_keep);
    const [own] = await store.list();
    const stored = await bus.findCheckpoint(nameSharedRun(config));
    if (!stored || (own !== undefined && own >= stored.step)) return;
    const temporary = `${path}.fetched.tmp`;
    try {
      const files = await fetchWhole(stored, temporary, { signal, report });
      if (files === null) return;
      const say = makeSay(report);
      if (own === undefined && hasRun(path)) say(`an earlier run of this name was moved to ${await moveAside(path)}`);
      await install(files, temporary, store, stored.step);
      say(`the checkpoint of step ${stored.step} was fetched from the bus`);
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
  } finally {
    lock.release();
  }
}

/** @returns the paths of its files; null: it is damaged. */
async function fetchWhole(
  stored: StoredCheckpoint,
  folder: string,
  { signal, report }: FetchOptions,
): Promise<string[] | null> {
  // A killed process may have left its folder behind.
  await guardRunWrite(folder, () => rm(folder, { recursive: true, force: true }));
  try {
    return await stored.fetch(folder, { signal, report });
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    const text = `the checkpoint of step ${stored.step} on the bus cannot be used: the run goes on from what its folder has`;
    report?.({ type: "warning", text: `${text}\n  ${error.message}` });
    return null;
  }
}

/** The checkpoint is installed last: without it, `openRun` cuts the other files back to the folder's own steps. */
async function install(files: readonly string[], from: string, store: CheckpointStore, step: number): Promise<void> {
  const path = dirname(store.path);
  const checkpoint = relative(path, store.folderOf(step));
  for (const name of files.filter((file) => !file.startsWith(`${checkpoint}/`))) {
    const target = join(path, name);
    await guardRunWrite(target, async () => {
      await mkdir(dirname(target), { recursive: true });
      await rename(join(from, name), target);
    });
  }
  await store.adopt(step, join(from, checkpoint));
}
