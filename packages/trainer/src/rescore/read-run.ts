import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DataError, readOrThrow } from "@cria/core";
import { nameCommand } from "../checkpoints/open-run.js";
import type { RunOrigin } from "../checkpoints/run-folder.js";
import { isMapping } from "../config/raw-config.js";

/** Kinds of dumps, by their folder in a run. */
export const dumpFolders = ["rollouts", "validation"] as const;

export interface SavedDump {
  folder: (typeof dumpFolders)[number];
  /** `<step>.jsonl`; validations between steps have other names. */
  name: string;
  path: string;
}

/** Files of a finished or interrupted run. */
export interface SavedRun {
  path: string;
  /** Its config as written, unchecked. */
  raw: Record<string, unknown>;
  /** Its record of model and folder; null: none. */
  origin: RunOrigin | null;
  /** Base of the config's relative paths. */
  configFolder: string;
  /** Sorted by folder and step. */
  dumps: SavedDump[];
}

/** @throws DataError when the folder is not that of a `cria train` run, or has no conversations. */
export function readRun(path: string): SavedRun {
  const file = join(path, "config.json");
  const refuse = (received: string) =>
    new DataError("is not the folder of a training", {
      code: "data/no-run",
      subject: path,
      expected:
        "a folder runs/<project>/<experiment> of cria train, with config.json and conversations (rollouts/*.jsonl)",
      received,
    });
  if (!existsSync(file)) throw refuse("no config.json");
  const json = readJson(file);
  if (!isMapping(json) || nameCommand(json) !== "cria train") throw refuse("the config of another command");
  // Notes that the run stores beside its config are not keys.
  const { machine: _, ...raw } = json;
  const noted = join(path, "run.json");
  const origin = existsSync(noted) ? (readJson(noted) as RunOrigin) : null;
  const trainer = isMapping(raw.trainer) ? raw.trainer : {};
  const elsewhere = { rollouts: trainer.rollout_data_dir, validation: trainer.validation_data_dir };
  const dumps = dumpFolders.flatMap((folder) => {
    const own = elsewhere[folder];
    return listDumps(folder, typeof own === "string" ? own : join(path, folder));
  });
  if (dumps.length === 0) throw refuse("no conversations: trainer.logger has no file, or no step was finished");
  return { path, raw, origin, configFolder: origin?.config_folder ?? process.cwd(), dumps };
}

function listDumps(folder: SavedDump["folder"], path: string): SavedDump[] {
  const names = existsSync(path) ? readdirSync(path).filter((name) => name.endsWith(".jsonl")) : [];
  const order = (name: string) => readStep(name) ?? Number.POSITIVE_INFINITY;
  return names
    .sort((a, b) => order(a) - order(b) || (a < b ? -1 : 1))
    .map((name) => ({ folder, name, path: join(path, name) }));
}

/** Step of a dump, from its name; null: it belongs to no step. */
export function readStep(name: string): number | null {
  const step = /^(\d+)\.jsonl$/.exec(name)?.[1];
  return step === undefined ? null : Number(step);
}

function readJson(file: string): unknown {
  return readOrThrow(() => JSON.parse(readFileSync(file, "utf8")), DataError, { subject: file, expected: "JSON" });
}
