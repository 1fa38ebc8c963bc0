import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { DataError, EngineError } from "@cria/core";
import { hashFile } from "@cria/core/internal";
import { isStateful, type StatefulEngine } from "../policy/stateful-engine.js";
import type { StepMetrics } from "../step-metrics.js";
import { makeDamaged, restoreEngineState, verifyEngineState, writeEngineState } from "./engine-state.js";
import { describeMachine, type Machine } from "./machine.js";
import { guardRunWrite, writeAtomically } from "./run-folder.js";

/** Everything that a run needs in order to continue as if it had never stopped. */
export interface TrainingState {
  /** Number of steps done. */
  step: number;
  /** "actor", or "actor_<role>" for each role with an adapter of its own, and "critic" if there is one. */
  engines: Record<string, object>;
  /** Writers of further files, by their paths in the checkpoint. */
  files?: Record<string, (path: string) => Promise<void>>;
  /** Plain JSON: the data loader's place, controllers, ... */
  data: unknown;
  /** Plain JSON: everything that the random draws depend on. */
  rng: unknown;
  /**
   * True if it was caused by the clock or an interruption. Only the newest of these is kept, in addition to the
   * regular ones.
   */
  interim?: boolean;
}

/** A checkpoint on disk whose files were read and are undamaged. */
export interface Checkpoint {
  path: string;
  step: number;
  /** The machine that made it; null if the checkpoint does not say. */
  machine: Machine | null;
  data: unknown;
  rng: unknown;
}

/** One that is written and synced, but under a temporary name. */
export interface PendingCheckpoint {
  commit(): Promise<void>;
  discard(): Promise<void>;
}

const STATE_FILE = "state.bin";
/** SHA-256, in hex, of each other file of a checkpoint, by its path there; of a state: the one at its end. */
const CHECKSUMS_FILE = "checksums.json";
type Checksums = Record<string, string>;
const NAME = /^global_step_(\d+)$/;

/**
 * The checkpoints of a run,
 * `checkpoints/global_step_N/{actor/state.bin,critic/state.bin,data.json,rng.json,checksums.json}`, and its
 * `latest_checkpointed_iteration.txt`. A checkpoint gets its name only when all of it is on disk. So every named,
 * undamaged checkpoint can be resumed from, and a process killed at any instant leaves at most temporary names
 * behind.
 */
export class CheckpointStore {
  readonly path: string;

  constructor(
    private readonly runPath: string,
    /** Most checkpoints kept, interim ones not counted; null: all. */
    private readonly keep: number | null = null,
  ) {
    this.path = join(runPath, "checkpoints");
  }

  /** Steps that have a checkpoint, newest first. */
  async list(): Promise<number[]> {
    const names = await readdir(this.path).catch(() => []);
    return names
      .flatMap((name) => NAME.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => b - a);
  }

  folderOf(step: number): string {
    return join(this.path, `global_step_${step}`);
  }

  /** Writes and syncs all files. @throws DataError on failure, for example a full disk; nothing is left behind then. */
  async prepare(state: TrainingState): Promise<PendingCheckpoint> {
    const target = this.folderOf(state.step);
    const temporary = `${target}.${process.pid}.tmp`;
    await guardRunWrite(target, async () => {
      try {
        await rm(temporary, { recursive: true, force: true });
        await mkdir(temporary, { recursive: true });
        const checksums: Checksums = {};
        for (const [name, engine] of Object.entries(state.engines)) {
          await mkdir(join(temporary, name), { recursive: true });
          const file = `${name}/${STATE_FILE}`;
          checksums[file] = await writeEngineState(join(temporary, file), checkStateful(name, engine));
          await syncFolder(join(temporary, name));
        }
        for (const [name, write] of Object.entries(state.files ?? {})) {
          const file = join(temporary, name);
          await mkdir(dirname(file), { recursive: true });
          await write(file);
          checksums[name] = await hashSynced(file);
          await syncFolder(dirname(file));
        }
        const engines = Object.keys(state.engines);
        checksums["data.json"] = await writeJson(join(temporary, "data.json"), {
          global_step: state.step,
          engines,
          machine: await describeMachine(),
          interim: state.interim === true,
          data: state.data,
        });
        const rng = { global_step: state.step, rng: state.rng };
        checksums["rng.json"] = await writeJson(join(temporary, "rng.json"), rng);
        await writeJson(join(temporary, CHECKSUMS_FILE), { global_step: state.step, files: checksums });
        await syncFolder(temporary);
      } catch (error) {
        await rm(temporary, { recursive: true, force: true }).catch(() => undefined);
        throw error;
      }
    });
    return {
      commit: () => this.commit(state.step, temporary),
      discard: () => rm(temporary, { recursive: true, force: true }),
    };
  }

  /** Adopts a whole checkpoint of another machine, in a folder on this disk, as that of a step. @throws DataError */
  async adopt(step: number, folder: string): Promise<void> {
    await guardRunWrite(this.path, async () => {
      await mkdir(this.path, { recursive: true });
      await syncFolder(folder);
    });
    await this.commit(step, folder);
  }

  private async commit(step: number, temporary: string): Promise<void> {
    const target = this.folderOf(step);
    await guardRunWrite(target, async () => {
      await this.drop(step);
      await rename(temporary, target);
      await syncFolder(this.path);
    });
    await writeAtomically(join(this.runPath, "latest_checkpointed_iteration.txt"), `${step}`);
    await this.dropSurplus();
  }

  private async dropSurplus(): Promise<void> {
    const steps = await this.list();
    const interim = await Promise.all(steps.map((step) => isInterim(this.folderOf(step))));
    const pick = (wanted: boolean) => steps.filter((_, i) => interim[i] === wanted);
    const surplus = [...pick(true).slice(1), ...(this.keep === null ? [] : pick(false).slice(this.keep))];
    for (const old of surplus) await this.drop(old);
  }

  /** Removes a checkpoint. It is renamed first, so that a kill does not leave a partial one under its name. */
  private async drop(step: number): Promise<void> {
    const folder = this.folderOf(step);
    if (!existsSync(folder)) return;
    const dying = `${folder}.dropped.tmp`;
    await rm(dying, { recursive: true, force: true });
    await rename(folder, dying);
    await rm(dying, { recursive: true, force: true });
  }

  /** Removes temporary files of a killed process. Only for the process that owns the run folder. */
  async sweep(): Promise<void> {
    for (const name of await readdir(this.path).catch(() => []))
      if (name.endsWith(".tmp")) await rm(join(this.path, name), { recursive: true, force: true });
  }

  /**
   * The newest undamaged checkpoint; null if there are no checkpoints.
   * @param warn called with a text for each damaged checkpoint that was skipped.
   * @throws DataError when all existing checkpoints are damaged.
   */
  async findNewest(warn: (text: string) => void): Promise<Checkpoint | null> {
    let damage: DataError | undefined;
    for (const step of await this.list()) {
      try {
        return await readCheckpoint(this.folderOf(step));
      } catch (error) {
        if (!(error instanceof DataError)) throw error;
        damage = error;
        warn(`${basename(this.folderOf(step))} is damaged, trying the one before it\n  ${error.message}`);
      }
    }
    if (damage) throw damage;
    return null;
  }

  /** Renames checkpoints after `step`, which a run that continues there will make again. Returns their new names. */
  async setAsideAfter(step: number): Promise<string[]> {
    const names: string[] = [];
    for (const newer of (await this.list()).filter((s) => s > step)) {
      const base = `${this.folderOf(newer)}.superseded`;
      let name = base;
      for (let i = 2; existsSync(name); i++) name = `${base}-${i}`;
      await guardRunWrite(name, () => rename(this.folderOf(newer), name));
      names.push(name);
    }
    return names;
  }
}

/** A damaged checkpoint counts as a regular one. */
async function isInterim(path: string): Promise<boolean> {
  try {
    return (JSON.parse(await readFile(join(path, "data.json"), "utf8")) as { interim?: boolean }).interim === true;
  } catch {
    return false;
  }
}

/**
 * Reads a checkpoint's small files, and verifies all files against their checksums. @throws DataError naming the
 * damaged file.
 */
export async function readCheckpoint(path: string): Promise<Checkpoint> {
  const step = Number(NAME.exec(basename(path))?.[1] ?? Number.NaN);
  if (Number.isNaN(step)) {
    throw new DataError("is not a checkpoint", {
      code: "data/bad-checkpoint",
      subject: path,
      expected: "a folder named global_step_<N>",
      received: basename(path),
    });
  }
  const read = <T>(name: string) => readJson<T>(join(path, name), step);
  const { value: sums } = await read<{ files: Checksums }>(CHECKSUMS_FILE);
  const check = (name: string, checksum: string) => {
    if (checksum === sums.files[name]) return;
    throw makeDamaged(join(path, name), `the file that ${CHECKSUMS_FILE} was written with`, "another checksum");
  };
  const { value: contents, checksum } = await read<{ engines: string[]; machine?: Machine; data: unknown }>(
    "data.json",
  );
  check("data.json", checksum);
  const { value: draws, checksum: ofDraws } = await read<{ rng: unknown }>("rng.json");
  check("rng.json", ofDraws);
  const { engines, machine = null, data } = contents;
  for (const name of engines) {
    const file = `${name}/${STATE_FILE}`;
    check(file, (await verifyEngineState(join(path, file))).checksum);
  }
  const checked = new Set(["data.json", "rng.json", ...engines.map((name) => `${name}/${STATE_FILE}`)]);
  for (const file of Object.keys(sums.files)) if (!checked.has(file)) check(file, await hashOf(join(path, file)));
  return { path, step, machine, data, rng: draws.rng };
}

/** Restores weights, moments and step counts. @throws DataError when they are missing, or belong to another model. */
export async function restoreEngines(checkpoint: Checkpoint, engines: Record<string, object>): Promise<void> {
  for (const [name, engine] of Object.entries(engines)) {
    const file = join(checkpoint.path, name, STATE_FILE);
    if (!existsSync(file)) {
      throw new DataError(`has no ${name}`, {
        code: "data/checkpoint-mismatch",
        subject: checkpoint.path,
        expected: file,
        received: "a checkpoint of a run without it",
        remedy:
          "resume with the algorithm.adv_estimator of that run, or start a new run with trainer.resume_mode=disable",
      });
    }
    await restoreEngineState(file, checkStateful(name, engine));
  }
}

function checkStateful(name: string, engine: object): StatefulEngine {
  if (isStateful(engine)) return engine;
  throw new EngineError("cannot be saved in a checkpoint", {
    code: "engine/no-state",
    subject: `the engine of the ${name}`,
    expected: "an engine whose tensors can be read and written, as loadModel's",
  });
}

/** @returns the file's SHA-256, in hex. */
async function writeJson(path: string, value: unknown): Promise<string> {
  const text = `${JSON.stringify(value, null, 2)}\n`;
  const file = await open(path, "w");
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  return hash(text);
}

async function readJson<T>(path: string, step: number): Promise<{ value: T; checksum: string }> {
  let received: string;
  try {
    const bytes = await readFile(path);
    const value = JSON.parse(bytes.toString()) as T & { global_step: number };
    if (value.global_step === step) return { value, checksum: hash(bytes) };
    received = `global_step ${value.global_step}`;
  } catch (error) {
    received = (error as Error).message;
  }
  throw makeDamaged(path, `JSON of global_step ${step}`, received);
}

const hash = (bytes: string | Buffer) => createHash("sha256").update(bytes).digest("hex");

/** The SHA-256 of a file of a checkpoint, in hex. @throws DataError when it cannot be read. */
function hashOf(path: string): Promise<string> {
  return hashFile(path).catch((cause: Error) => {
    throw makeDamaged(path, "a file that can be read", cause.message);
  });
}

/** Syncs a file that was written. @returns its SHA-256, in hex. */
async function hashSynced(path: string): Promise<string> {
  // Windows syncs only what is open for writing.
  await sync(path, "r+");
  return hashFile(path);
}

/** A rename or a new file is durable only once its folder is synced. NTFS needs no sync, and Windows allows none. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform !== "win32") await sync(path, "r");
}

async function sync(path: string, flags: "r" | "r+"): Promise<void> {
  const opened = await open(path, flags);
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}

/** Part of a checkpoint's data.json if the step's validation was interrupted. */
export interface Unvalidated {
  unvalidated?: StepMetrics;
}
