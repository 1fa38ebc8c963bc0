import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { ConfigError, DataError } from "@cria/core";

/** A file of conversations. */
export interface DumpFile {
  file: string;
  /** Step of the training; null when its name has none. */
  step: number | null;
}

export interface FindDumpsOptions {
  /** A step, "all" of them, or undefined: the newest. */
  step?: number | "all";
  /** Conversations of validations instead of the training's. */
  validation?: boolean;
}

/**
 * The dumps that the user asks for.
 * @param path a run folder, a folder of dumps, or one dump.
 * @throws DataError when there are none, or none of this step, naming those that exist; ConfigError for options that do
 * not fit.
 */
export function findDumps(path: string, { step, validation = false }: FindDumpsOptions = {}): DumpFile[] {
  if (!existsSync(path)) {
    throw new DataError("does not exist", {
      code: "data/no-run",
      subject: path,
      expected: "a run folder (runs/<project>/<experiment>), or a file of conversations (JSONL)",
      received: "no such file or folder",
      remedy: "check the path; cria runs lists all runs",
    });
  }
  if (!statSync(path).isDirectory()) {
    if (step === undefined && !validation) return [{ file: path, step: null }];
    throw new ConfigError("is for run folders", {
      code: "config/bad-argument",
      subject: validation ? "--validation" : "--step",
      expected: "a run folder in front of it",
      received: `the file ${path}`,
      remedy: "leave it out, or filter by the step: --filter 'step == 20'",
    });
  }
  const { files, looked } = listDumps(path, validation);
  if (files.length === 0) throw makeNoDumps(path, looked, validation);
  if (step === "all") return files;
  if (step === undefined) return [files.at(-1)!];
  const found = files.filter((dump) => dump.step === step);
  if (found.length > 0) return found;
  const steps = files.flatMap((dump) => dump.step ?? []);
  throw new DataError("has no conversations of this step", {
    code: "data/no-step",
    subject: path,
    expected: steps.length > 0 ? `one of ${listRanges(steps)}` : "no step: its files have none",
    received: `step ${step}`,
  });
}

/** Dumps by step; those of `cria rollout` in the folder if the training left none. */
function listDumps(path: string, validation: boolean): { files: DumpFile[]; looked: string } {
  const folder = findFolder(path, validation);
  const files = readFolder(folder);
  if (files.length > 0) return { files, looked: folder };
  if (!validation) {
    const rollout = join(path, "trajectories.jsonl");
    if (existsSync(rollout)) return { files: [{ file: rollout, step: null }], looked: folder };
    // The folder of dumps itself.
    const own = readFolder(path).filter((dump) => dump.step !== null);
    if (own.length > 0) return { files: own, looked: path };
  }
  return { files: [], looked: folder };
}

/** The folder of a run's dumps; its config may name another place. */
function findFolder(path: string, validation: boolean): string {
  const key = validation ? "validation_data_dir" : "rollout_data_dir";
  let elsewhere: unknown;
  try {
    const config = JSON.parse(readFileSync(join(path, "config.json"), "utf8")) as { trainer?: Record<string, unknown> };
    elsewhere = config.trainer?.[key];
  } catch {
    // No config, or a damaged one: runs write to their own folders by default.
  }
  return typeof elsewhere === "string" ? elsewhere : join(path, validation ? "validation" : "rollouts");
}

function readFolder(folder: string): DumpFile[] {
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".jsonl")) : [];
  const readStep = (name: string) => /^(?:val_only-)?(\d+)\.jsonl$/.exec(name)?.[1];
  return names
    .map(
      (name): DumpFile => ({
        file: join(folder, name),
        step: readStep(name) === undefined ? null : Number(readStep(name)),
      }),
    )
    .sort(
      (a, b) =>
        (a.step ?? Number.POSITIVE_INFINITY) - (b.step ?? Number.POSITIVE_INFINITY) || (a.file < b.file ? -1 : 1),
    );
}

/** 1, 2, 3, 5 as "1 to 3, 5". */
function listRanges(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const ranges: [number, number][] = [];
  for (const number of sorted) {
    const last = ranges.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from} to ${to}`)).join(", ");
}

function makeNoDumps(path: string, looked: string, validation: boolean): DataError {
  const runs = findRunsBelow(path);
  return new DataError("has no conversations", {
    code: "data/no-dumps",
    subject: path,
    expected: `<step>.jsonl in ${looked}`,
    remedy:
      runs.length > 0
        ? `name a run: ${runs.slice(0, 5).join(", ")}`
        : validation
          ? "leave out --validation for those of the training, or train with data.val_files"
          : "a training writes them after each step (trainer.logger has file); cria rollout writes some at once",
  });
}

/** Runs one or two folders further down: a user who names runs/ or runs/<project> gets them listed. */
function findRunsBelow(path: string): string[] {
  const list = (folder: string) =>
    readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [join(folder, entry.name)] : [],
    );
  const below = list(path);
  return [...below, ...below.flatMap(list)].filter((folder) => existsSync(join(folder, "rollouts")));
}
