import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { DataError, readOrThrow } from "@cria/core";
import { type LoadedConfig, type RunOrigin, type TrainConfig, trainConfigSchema } from "@cria/trainer";
import { checkConfig, nameCommand } from "@cria/trainer/internal";
import { checkRunFolder } from "./check-run-folder.js";

/**
 * The config that `cria train` needs to resume a run at its newest checkpoint: the run's own config, with its output at
 * the folder's current place.
 * @throws DataError for folders that are no run of `cria train`, or whose files cannot be read.
 */
export async function loadRunConfig(path: string): Promise<LoadedConfig<TrainConfig>> {
  await checkRunFolder(path);
  const file = join(path, "config.json");
  const { machine: _, ...values } = readJson(file) as Record<string, unknown>;
  if (nameCommand(values) !== "cria train") {
    throw new DataError("cannot be resumed", {
      code: "data/other-command",
      subject: path,
      expected: "a run of cria train",
      received: nameCommand(values) ?? "another folder",
      remedy: "repeat the command that started it: it resumes from its newest checkpoint",
    });
  }
  const config = checkConfig(trainConfigSchema, values, file);
  const origin = existsSync(join(path, "run.json")) ? (readJson(join(path, "run.json")) as RunOrigin) : null;
  const run = resolve(path);
  config.trainer.experiment_name = basename(run);
  config.trainer.project_name = basename(dirname(run));
  config.trainer.default_local_dir = dirname(dirname(run));
  config.trainer.resume_mode = "auto";
  config.trainer.resume_from_path = null;
  return { values: config, folder: origin?.config_folder ?? process.cwd(), typed: new Set(), file, warnings: [] };
}

function readJson(file: string): unknown {
  return readOrThrow(() => JSON.parse(readFileSync(file, "utf8")), DataError, { subject: file, expected: "JSON" });
}
