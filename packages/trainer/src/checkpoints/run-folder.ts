import { mkdir, open, readdir, readFile, rm } from "node:fs/promises";
import { join, resolve } from "node:path";

import { type PolicyEngine, writeFileAtomically } from "@cria/core";
import { guardWrite } from "@cria/core/internal";
import { readJson } from "../config/raw-config.js";
import { readMetricLines, readStep } from "../step-metrics.js";
import { describeMachine } from "./machine.js";
import { describeModelFile, type ModelFile } from "./model-file.js";

/** Folder in a run folder: recorded answers of the steps that no checkpoint holds, `<step>.jsonl`. */
export const JOURNAL_FOLDER = "journal";

/** The folder of a run's files: resolved config, metrics, trajectories, adapters. */
export class RunFolder {
  private constructor(readonly path: string) {}

  static async create(path: string): Promise<RunFolder> {
    await guardRunWrite(path, () => mkdir(path, { recursive: true }));
    return new RunFolder(path);
  }

  /** Removes files of an earlier run of the same name. */
  async clear(): Promise<void> {
    const names = [
      "metrics.jsonl",
      "rollouts",
      "validation",
      JOURNAL_FOLDER,
      "end.json",
      "problems.json",
      "summary.json",
      "checkpoints",
    ];
    for (const name of [...names, "latest_checkpointed_iteration.txt"])
      await rm(join(this.path, name), { recursive: true, force: true });
  }

  /**
   * Removes everything after a step, for a run that continues there: metrics, rollouts, validations.
   * @param lastMetrics the last step whose metrics are kept; default: `step`. The step before it, if the metrics of
   * `step` are still to be written.
   */
  async rewindTo(step: number, lastMetrics = step): Promise<void> {
    const metrics = this.file("metrics.jsonl");
    const lines = (await readFile(metrics, "utf8").catch(() => "")).split("\n");
    const kept = lines.filter((line) => readStep(line) <= lastMetrics);
    if (kept.length > 0) await writeAtomically(metrics, kept.map((line) => `${line}\n`).join(""));
    else await guardRunWrite(metrics, () => rm(metrics, { force: true }));
    for (const folder of ["rollouts", "validation"]) {
      for (const name of await readdir(this.file(folder)).catch(() => []))
        if (Number.parseInt(name, 10) > step) await rm(this.file(folder, name), { force: true });
    }
  }

  /** Written metrics of steps and validations; none if the file does not exist. */
  async readMetrics(): Promise<Record<string, number>[]> {
    return readMetricLines(this.file("metrics.jsonl"));
  }

  /** Reads a JSON file of the folder; undefined if it is missing or damaged. */
  readJson(name: string): Promise<unknown> {
    return readJson(this.file(name));
  }

  file(...parts: string[]): string {
    return join(this.path, ...parts);
  }

  async writeJson(name: string, value: unknown): Promise<void> {
    await writeAtomically(this.file(name), `${JSON.stringify(value, null, 2)}\n`);
  }

  /** Writes the resolved config and the machine to `config.json`. */
  async writeConfig(config: object): Promise<void> {
    await this.writeJson("config.json", { ...config, machine: await describeMachine() });
  }

  /** @param engine the training engine. */
  async writeOrigin({ info, images }: Pick<PolicyEngine, "info" | "images">, configFolder: string): Promise<void> {
    const path = resolve(info.path);
    const file = await describeModelFile(path).catch(() => undefined);
    const origin: RunOrigin = {
      model: path,
      ...(file ? { model_file: file } : {}),
      ...(images ? { projector: resolve(images.info.path), projector_hash: images.info.hash } : {}),
      device: info.device,
      config_folder: resolve(configFolder),
      started: new Date().toISOString(),
    };
    await this.writeJson("run.json", origin);
  }

  async writeLines(name: string, rows: readonly unknown[]): Promise<void> {
    await writeLines(this.file(name), rows);
  }

  /** Appends a line and syncs. */
  async appendLine(name: string, row: unknown): Promise<void> {
    const path = this.file(name);
    await guardRunWrite(path, async () => {
      const file = await open(path, "a");
      try {
        await file.writeFile(`${JSON.stringify(row)}\n`);
        await file.datasync();
      } finally {
        await file.close();
      }
    });
  }
}

/** Facts about a run that `config.json` lacks: locations of its files. `run.json`. */
export interface RunOrigin {
  /** The model's GGUF. */
  model: string;
  /** Identifies the model's file. */
  model_file?: ModelFile;
  /** The projector's GGUF, and its SHA-256; left out: the policy reads only text. */
  projector?: string;
  projector_hash?: string;
  /** Computing device: "cpu", "cuda", "metal" or "vulkan". */
  device?: string;
  /** Base of the config's relative paths. */
  config_folder: string;
  started: string;
}

/** Writes JSON lines atomically. @throws DataError */
export function writeLines(path: string, rows: readonly unknown[]): Promise<void> {
  return writeAtomically(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
}

/** Writes to a temporary name, syncs, renames: a reader never sees a partial file. @throws DataError */
export function writeAtomically(path: string, text: string): Promise<void> {
  return guardRunWrite(path, () => writeFileAtomically(path, text));
}

/** Adds a remedy to file system errors about a run folder. @throws DataError */
export function guardRunWrite<T>(path: string, write: () => Promise<T>): Promise<T> {
  return guardWrite(path, write, "set trainer.default_local_dir to another folder");
}
