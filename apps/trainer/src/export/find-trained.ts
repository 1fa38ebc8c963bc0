import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { ConfigError, DataError, readOrThrow } from "@cria/core";
import type { LlamaModel, LoadModelOptions } from "@cria/engine";
import { isAddress } from "@cria/hub/internal";
import {
  type Checkpoint,
  CheckpointStore,
  findCheckpoint,
  type RunOrigin,
  type SftConfig,
  sftConfigSchema,
  type TrainConfig,
  trainConfigSchema,
} from "@cria/trainer";
import {
  checkConfig,
  loadConfiguredModel,
  loadSftModel,
  nameCommand,
  nameForRole,
  type Role,
  usesLora,
} from "@cria/trainer/internal";

/** The trained weights of a run, found by its folder or by one of its checkpoints. */
export interface Trained {
  /** The configs of the run's command; `train` is null for a run of `cria sft`, and the other way round. */
  train: TrainConfig | null;
  sft: SftConfig | null;
  /** Base folder of the config's relative paths. */
  configFolder: string;
  /** True if a LoRA adapter was trained, rather than all weights. */
  lora: boolean;
  /** Loads the base model with a new adapter (or fully trainable), as the run did, for its checkpoints. */
  load: (overrides: Partial<LoadModelOptions>) => Promise<LlamaModel>;
  /** The model that the run started from. */
  base: string;
  /** null: the run has saved weights (`adapter` or `model`) and no checkpoint, like the demo, or nothing yet. */
  checkpoint: Checkpoint | null;
  weights: string | null;
  /** The role whose adapter is meant; null: one plays all roles. */
  role: Role;
}

/**
 * @param path a run folder (its newest whole checkpoint counts) or a folder `global_step_<N>`.
 * @param base the model's GGUF, for runs that were moved; null: the run's note.
 * @param options.isRunning true if the run may have saved nothing yet.
 * @param options.role the role whose adapter is meant, of a run that trained one for each; null: the weights are named
 * otherwise.
 * @throws DataError when there is nothing to export, or the model has moved; ConfigError without a role where one is
 * needed, and for one that the run does not have.
 */
export async function findTrained(
  path: string,
  base: string | null,
  say: (text: string) => void,
  { isRunning = false, role }: { isRunning?: boolean; role?: Role } = {},
): Promise<Trained> {
  const isCheckpoint = existsSync(join(path, "data.json"));
  const run = isCheckpoint ? dirname(dirname(resolve(path))) : resolve(path);
  const file = join(run, "config.json");
  if (!existsSync(file)) throw makeNoRun(path, "no config.json");
  // The run's note next to its config is no config key.
  const { machine: _, ...values } = readJson(file) as Record<string, unknown>;
  const isSft = nameCommand(values) === "cria sft";
  const sft = isSft ? checkConfig(sftConfigSchema, values, file) : null;
  const train = isSft ? null : checkConfig(trainConfigSchema, values, file);
  const hasCheckpoints = isCheckpoint || existsSync(join(run, "checkpoints"));
  const roles = train?.actor_rollout_ref.model.lora_roles ?? null;
  if (role !== null) checkRole(role, roles);
  const adapters = [role ?? null, ...(role === null ? (roles ?? []) : [])].map((r) => nameForRole("adapter.gguf", r));
  const weights = [...adapters, "model.gguf"].map((name) => join(run, name)).find((name) => existsSync(name)) ?? null;
  if (!hasCheckpoints && !weights && !isRunning) throw makeNoRun(path, "neither checkpoints nor weights");
  const origin = existsSync(join(run, "run.json")) ? (readJson(join(run, "run.json")) as RunOrigin) : null;
  const model = base ?? origin?.model;
  const written = sft ? sft.model.path : train!.actor_rollout_ref.model.path;
  if (!model || !existsSync(model)) {
    throw new DataError("does not exist", {
      code: "data/no-base-model",
      subject: model ?? "the run's model",
      expected: "the GGUF that the run started from",
      received: model ? "no such file" : "the run did not record its path",
      remedy: `name it: --base ${isAddress(written) ? written : "model.gguf"}`,
    });
  }
  const configFolder = origin?.config_folder ?? process.cwd();
  return {
    train,
    sft,
    configFolder,
    lora: sft ? sft.model.lora_rank > 0 : usesLora(train!),
    load: (overrides) => {
      const given = { path: model, ...overrides };
      return sft ? loadSftModel(sft, configFolder, given) : loadConfiguredModel(train!, configFolder, given);
    },
    base: model,
    checkpoint: await findOwnCheckpoint(path, { hasCheckpoints, isRunning, say }),
    weights,
    role: role ?? null,
  };
}

function checkRole(role: string | undefined, roles: readonly string[] | null): void {
  if (roles ? role !== undefined && roles.includes(role) : role === undefined) return;
  throw new ConfigError(role === undefined ? "is missing" : "is no role with an adapter of its own", {
    code: "config/bad-argument",
    subject: "--role",
    expected: roles ? `one of ${roles.join(", ")}: each has an adapter` : "a run that trained an adapter for each role",
    received: role ?? "none",
  });
}

async function findOwnCheckpoint(
  path: string,
  { hasCheckpoints, isRunning, say }: { hasCheckpoints: boolean; isRunning: boolean; say: (text: string) => void },
): Promise<Checkpoint | null> {
  // The folder exists before its first checkpoint.
  if (isRunning && (await new CheckpointStore(path).list()).length === 0) return null;
  return hasCheckpoints ? findCheckpoint(path, say) : null;
}

function readJson(file: string): unknown {
  return readOrThrow(() => JSON.parse(readFileSync(file, "utf8")), DataError, { subject: file, expected: "JSON" });
}

function makeNoRun(path: string, received: string): DataError {
  return new DataError("is not the folder of a run", {
    code: "data/no-run",
    subject: path,
    expected: "a folder runs/<project>/<experiment>, or checkpoints/global_step_<N> in it",
    received,
  });
}
