import { existsSync, readdirSync } from "node:fs";
import { readFile, rename } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ConfigError, DataError } from "@cria/core";
import { isMapping } from "../config/raw-config.js";
import type { TrainConfig } from "../config/train-config.js";
import { type Checkpoint, CheckpointStore, readCheckpoint, type Unvalidated } from "./checkpoint-store.js";
import { compareConfigs, formatDifferences } from "./compare-configs.js";
import { compareMachines, describeMachine } from "./machine.js";
import { guardRunWrite, JOURNAL_FOLDER, RunFolder } from "./run-folder.js";
import { RunLock } from "./run-lock.js";

export interface OpenedRun {
  folder: RunFolder;
  checkpoints: CheckpointStore;
  /** Checkpoint to resume from; null: start from the beginning. */
  resume: Checkpoint | null;
  close(): void;
}

/** The part of a config that names the run's folder and the checkpoint to resume from. */
export interface RunConfig {
  trainer: Pick<
    TrainConfig["trainer"],
    | "project_name"
    | "experiment_name"
    | "default_local_dir"
    | "resume_mode"
    | "resume_from_path"
    | "max_actor_ckpt_to_keep"
  >;
}

/**
 * Keys that determine the meaning of the saved tensors: with other values they would not fit. Those of sft come
 * last.
 */
const FIXED_KEYS = [
  "actor_rollout_ref.model.path",
  "actor_rollout_ref.model.mmproj",
  "actor_rollout_ref.model.lora_rank",
  "actor_rollout_ref.model.lora_alpha",
  "actor_rollout_ref.model.target_modules",
  "actor_rollout_ref.model.lora_adapter_path",
  "actor_rollout_ref.model.lora_roles",
  "model.path",
  "model.mmproj",
  "model.lora_rank",
  "model.lora_alpha",
  "model.target_modules",
];

export function findRunPath({ trainer }: RunConfig): string {
  return join(trainer.default_local_dir, trainer.project_name, trainer.experiment_name);
}

/**
 * Creates or opens the run folder as `trainer.resume_mode` says, and determines where training starts. Files of an
 * earlier run are never removed: a new run moves them to `<experiment_name>.old-<i>`.
 * @param say called with a text for everything that is resumed, moved, skipped, or different in the config.
 * @throws DataError when the folder is in use or cannot be written, or all checkpoints are damaged; ConfigError when
 * the config does not fit the checkpoint.
 */
export async function openRun(config: RunConfig, say: (text: string) => void): Promise<OpenedRun> {
  const path = findRunPath(config);
  const lock = await RunLock.acquire(path);
  try {
    const checkpoints = new CheckpointStore(path, config.trainer.max_actor_ckpt_to_keep);
    await checkpoints.sweep();
    const resume = await findResume(config, say);
    const within = resume !== null && resolve(dirname(dirname(resume.path))) === resolve(path);
    if (resume) {
      await checkConfigOf(resume.path, config, say);
      say(`resuming after step ${resume.step}, from ${resume.path}`);
      const otherKernels = compareMachines(resume.machine, await describeMachine());
      if (otherKernels) say(otherKernels);
    }
    if (within) {
      for (const name of await checkpoints.setAsideAfter(resume.step))
        say(`a later checkpoint is now ${basename(name)}`);
    } else if (hasRun(path)) {
      const aside = await moveAside(path);
      say(`an earlier run of this name was moved to ${aside}`);
      // It was killed before its first checkpoint: what its tools answered still counts.
      if (config.trainer.resume_mode === "auto") await takeJournal(aside, path);
    }
    const folder = await RunFolder.create(path);
    if (within) await folder.rewindTo(resume.step, isValidated(resume) ? resume.step : resume.step - 1);
    await folder.writeConfig(config);
    return { folder, checkpoints, resume, close: lock.release };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * Throws the errors of `openRun` about the lock and the config, without reading checkpoints or changing anything, so
 * that such a mistake is reported before a model is loaded.
 * @throws DataError when the folder is in use; ConfigError when the config does not fit the run to be resumed.
 */
export async function checkRun(config: RunConfig): Promise<void> {
  const path = findRunPath(config);
  await RunLock.check(path);
  const { resume_mode, resume_from_path } = config.trainer;
  const source = { auto: path, disable: null, resume_path: resume_from_path }[resume_mode];
  if (source === null) return;
  const [newest] = await new CheckpointStore(source).list();
  const checkpoint = newest === undefined ? source : new CheckpointStore(source).folderOf(newest);
  if (newest !== undefined || resume_mode === "resume_path") await checkConfigOf(checkpoint, config, () => undefined);
}

/** Finds the checkpoint that `trainer.resume_mode` names; null: none. @throws ConfigError or DataError */
export async function findResume(config: RunConfig, say: (text: string) => void): Promise<Checkpoint | null> {
  const { trainer } = config;
  if (trainer.resume_mode === "disable") return null;
  if (trainer.resume_mode === "auto") return new CheckpointStore(findRunPath(config)).findNewest(say);
  const path = trainer.resume_from_path;
  if (path === null) {
    throw new ConfigError("is missing", {
      code: "config/bad-value",
      subject: "trainer.resume_from_path",
      expected: "a checkpoint (.../checkpoints/global_step_<N>) or a run folder, as trainer.resume_mode is resume_path",
      received: "null",
    });
  }
  return findCheckpoint(path, say);
}

/** Finds a checkpoint by its own folder, or the newest whole one of a run folder. @throws DataError */
export async function findCheckpoint(path: string, say: (text: string) => void): Promise<Checkpoint> {
  if (!existsSync(join(path, "checkpoints"))) return readCheckpoint(resolve(path));
  const newest = await new CheckpointStore(resolve(path)).findNewest(say);
  if (newest) return newest;
  throw new DataError("has no checkpoint", {
    code: "data/bad-checkpoint",
    subject: path,
    expected: "a run that saved one, by trainer.save_freq or at its end",
  });
}

/**
 * @param checkpoint path of its folder. @throws ConfigError for a key that must not change; other changes are
 * reported.
 */
async function checkConfigOf(checkpoint: string, config: RunConfig, say: (text: string) => void): Promise<void> {
  const file = join(dirname(dirname(checkpoint)), "config.json");
  if (!existsSync(file)) return;
  let before: unknown;
  try {
    before = JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    say(`${file} cannot be read, so the configs were not compared: ${(error as Error).message}`);
    return;
  }
  const [command, other] = [nameCommand(config), nameCommand(before)];
  if (other !== null && other !== command) {
    throw new ConfigError("is a checkpoint of another command", {
      code: "config/other-command",
      subject: checkpoint,
      expected: `a run of ${command}`,
      received: `a run of ${other}`,
      remedy: "set another trainer.project_name or trainer.experiment_name; weights go from one to the other as a GGUF",
    });
  }
  // The machine that made a checkpoint is recorded in the checkpoint.
  const differences = compareConfigs(before, JSON.parse(JSON.stringify(config)));
  // A user who names the checkpoint may have moved the model.
  const explicit = config.trainer.resume_mode === "resume_path";
  const fatal = differences.filter(
    ({ key, before, after }) =>
      FIXED_KEYS.includes(key) &&
      !(explicit && key.endsWith("model.path")) &&
      // Runs of earlier versions lack newer keys.
      !(before === undefined && after === null),
  );
  if (fatal.length > 0) {
    throw new ConfigError("differs from the run that is to be resumed", {
      code: "config/changed-since-checkpoint",
      subject: fatal.map(({ key }) => key).join(", "),
      expected: fatal.map(({ before: value }) => JSON.stringify(value)).join(", "),
      received: fatal.map(({ after: value }) => JSON.stringify(value)).join(", "),
      remedy:
        "set it back, or start a new run: another trainer.experiment_name, or trainer.resume_mode=disable (the same model at another path: trainer.resume_mode=resume_path)",
    });
  }
  const changed = differences.filter(
    ({ key }) => !/^(machine$|trainer\.(resume_|default_local_dir|project_name|experiment))/.test(key),
  );
  if (changed.length > 0) say(`the config has changed since ${basename(checkpoint)}:\n${formatDifferences(changed)}`);
}

/** The command that a config belongs to; null: neither. */
export function nameCommand(config: unknown): "cria train" | "cria sft" | null {
  if (!isMapping(config)) return null;
  if ("actor_rollout_ref" in config) return "cria train";
  return "model" in config ? "cria sft" : null;
}

/** True if the metrics of the checkpoint's step are complete: a validation may have been interrupted. */
function isValidated({ data }: Checkpoint): boolean {
  return (data as Unvalidated | null)?.unvalidated === undefined;
}

/** True if a folder contains data of a run that must not be lost. */
export function hasRun(path: string): boolean {
  const names = existsSync(path) ? readdirSync(path) : [];
  const isOfRun = (name: string) => ["metrics.jsonl", "checkpoints", "model.gguf", JOURNAL_FOLDER].includes(name);
  return names.some((name) => isOfRun(name) || /^adapter(_[\w-]+)?\.gguf$/.test(name));
}

/** Moves the journal of a run that begins again to its new folder. @throws DataError */
async function takeJournal(from: string, to: string): Promise<void> {
  const journal = join(from, JOURNAL_FOLDER);
  if (!existsSync(journal)) return;
  await RunFolder.create(to);
  const target = join(to, JOURNAL_FOLDER);
  await guardRunWrite(target, () => rename(journal, target));
}

/** Renames a run folder to `<name>.old-<i>`, which it returns. @throws DataError */
export async function moveAside(path: string): Promise<string> {
  for (let i = 1; ; i++) {
    const target = `${path}.old-${i}`;
    if (existsSync(target)) continue;
    await guardRunWrite(target, () => rename(path, target));
    return target;
  }
}
