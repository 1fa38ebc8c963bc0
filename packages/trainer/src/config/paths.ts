import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { ConfigError } from "@cria/core";
import { isAddress } from "@cria/hub/internal";
import { isMapping } from "./raw-config.js";

/**
 * Rules for relative paths, the same in every command. A path typed in a shell, as an argument or as key=value, is
 * relative to the working directory. A path in a file is relative to that file's folder. A default, for example of
 * `trainer.default_local_dir`, is relative to the working directory. `~/` is the home folder; an address (`hf:...`)
 * is no path.
 */

/**
 * model, projector, rows: files to read, or addresses of a hub. file: a file to read. module: `./file.ts#export`, or
 * a name that is no path. output: a file or folder to write, or to read if it exists. run: a run folder or
 * checkpoint to read.
 */
type PathKind = AddressKind | "file" | "module" | "output" | "run";

/** Kinds of files that a hub offers. */
export type AddressKind = "model" | "projector" | "rows";

const addressKinds: readonly string[] = ["model", "projector", "rows"] satisfies AddressKind[];

const rollout = "actor_rollout_ref.rollout";

/** All keys that may hold paths, of `cria train` and then of `cria sft`. `*` stands for each entry of a list or mapping. */
export const pathKeys: Readonly<Record<string, PathKind>> = {
  "actor_rollout_ref.model.path": "model",
  "actor_rollout_ref.model.mmproj": "projector",
  "actor_rollout_ref.model.lora_adapter_path": "file",
  "critic.model.path": "model",
  [`${rollout}.multi_turn.tool_config_path`]: "file",
  [`${rollout}.multi_turn.interaction_config_path`]: "file",
  [`${rollout}.multi_turn.format`]: "module",
  [`${rollout}.agent.agent_loop_config_path`]: "file",
  "actor_rollout_ref.actor.policy_loss.loss_mode": "module",
  "actor_rollout_ref.actor.loss_agg_mode": "module",
  "actor_rollout_ref.actor.kl_loss_type": "module",
  "actor_rollout_ref.actor.loss_terms.*.term": "module",
  "algorithm.adv_estimator": "module",
  "algorithm.kl_penalty": "module",
  "algorithm.replay.sampling": "module",
  "distillation.teacher_models.*.model_path": "model",
  "distillation.teacher_models.*.lora_adapter_path": "file",
  "data.train_files": "rows",
  "data.val_files": "rows",
  "data.map": "module",
  "data.demonstrations.files": "rows",
  "data.cache_dir": "output",
  "data.custom_cls.path": "file",
  "data.sampler.class_path": "file",
  "custom_reward_function.path": "file",
  "reward_model.model.path": "model",
  "reward_model.model.head_path": "file",
  "reward_model.model.prompt_template_path": "file",
  "reward_model.model.*.path": "model",
  "reward_model.model.*.head_path": "file",
  "reward_model.model.*.prompt_template_path": "file",
  "trainer.default_local_dir": "output",
  "trainer.resume_from_path": "run",
  "trainer.rollout_data_dir": "output",
  "trainer.validation_data_dir": "output",
  "model.path": "model",
  "model.mmproj": "projector",
  "trainer.output_path": "output",
};

/** A path in a config. */
interface Place {
  /** The key, with the position in a list: data.train_files.0. */
  id: string;
  key: string;
  kind: PathKind;
  value: string;
  holder: Record<string, unknown>;
  name: string;
}

/** Keys whose paths were typed in the shell; entries of lists include their position. */
export type TypedPaths = ReadonlySet<string>;

/** Makes a path absolute, relative to a folder; addresses stay unchanged. */
export function resolvePath(folder: string, path: string): string {
  if (isAddress(path) || isAbsolute(path)) return path;
  return path.startsWith("~/") ? join(homedir(), path.slice(2)) : resolve(folder, path);
}

/** Resolves a path that was typed in the shell. */
export function resolveTyped(path: string): string {
  return resolvePath(process.cwd(), path);
}

/**
 * Makes paths of a raw config absolute, in place: typed ones, because later nothing tells their base folder, and
 * those of runs and outputs. Other paths of the file stay unchanged, so that a run's config stays valid in a moved
 * folder.
 * @param typed the overrides.
 */
export function resolveRawPaths(
  raw: Record<string, unknown>,
  typed: Record<string, unknown>,
  folder: string,
): TypedPaths {
  const typedValues = new Map(listPlaces(typed).map(({ id, value }) => [id, value]));
  const resolved = new Set<string>();
  for (const { id, kind, value, holder, name } of listPlaces(raw)) {
    const isTyped = typedValues.get(id) === value;
    if (isTyped) resolved.add(id);
    if (isTyped || kind === "output" || kind === "run")
      holder[name] = resolveAs(kind, isTyped ? process.cwd() : folder, value);
  }
  return resolved;
}

/** Makes all paths of a raw config absolute, in place. @param folder base of relative paths. */
export function resolveAllPaths(raw: Record<string, unknown>, folder: string): void {
  for (const { kind, value, holder, name } of listPlaces(raw)) holder[name] = resolveAs(kind, folder, value);
}

/** Hub addresses in a checked config, except those of the keys in `except`. */
export function listAddresses(
  values: object,
  except: readonly string[] = [],
): { kind: AddressKind; address: string }[] {
  return listPlaces(values).flatMap(({ key, kind, value }) =>
    addressKinds.includes(kind) && isAddress(value) && !except.includes(key)
      ? [{ kind: kind as AddressKind, address: value }]
      : [],
  );
}

/** Errors for the files that a checked config names and that do not exist. Keys in `except` are skipped. */
export function listMissingPaths(
  { values, folder, typed, file }: { values: object; folder: string; typed: TypedPaths; file: string },
  except: readonly string[] = [],
): ConfigError[] {
  return listPlaces(values).flatMap(({ id, key, kind, value }) => {
    if (kind === "output" || except.includes(key) || isAddress(value) || isName(kind, value)) return [];
    const resolved = resolveAs(kind, folder, value);
    const path = kind === "module" ? resolved.slice(0, resolved.lastIndexOf("#")) : resolved;
    if (existsSync(path)) return [];
    // A single value, which the schema turns into a list.
    const isTyped = typed.has(id) || typed.has(id.replace(/\.0(?=\.|$)/, ""));
    const named = key.includes("*") ? id : key;
    if (isTyped) return [makeMissing({ kind, subject: named, written: path, path, folder: null })];
    return [makeMissing({ kind, subject: `${file}: ${named}`, written: value, path, folder })];
  });
}

/**
 * Finds the file of a command's argument. @returns its path, or the address. @throws ConfigError when it does not
 * exist.
 */
export function checkArgument(option: string, path: string): string {
  const found = resolveTyped(path);
  if (isAddress(path) || existsSync(found)) return found;
  throw makeMissing({ subject: option, written: path, path: found, folder: null });
}

interface Missing {
  kind?: PathKind;
  subject: string;
  written: string;
  path: string;
  /** Folder of the file that names the path; null: it was typed. */
  folder: string | null;
}

function makeMissing({ kind, subject, written, path, folder }: Missing): ConfigError {
  const rule = folder === null ? describeShellRule() : `a path in a file starts at that file's folder, ${folder}`;
  const other = folder === null ? null : resolve(process.cwd(), written);
  const elsewhere = other !== null && other !== path && existsSync(other) ? `; ${other} is there` : "";
  // Other frameworks accept a hub's names without a prefix.
  const name = /(?:^|\/)([\w.-]+\/[\w.-]+)$/.exec(written)?.[1];
  const isName = name !== undefined && !/\.(gguf|parquet|jsonl?)$/i.test(name);
  const model = `hf:${name}:<quantisation>`;
  const address = { model, projector: model, rows: `hf:${name}/<config>/<split>` }[kind as AddressKind];
  const hub = isName && address !== undefined ? `; what lies on a hub is named ${address}` : "";
  return new ConfigError("does not exist", {
    code: "config/path-missing",
    subject,
    expected: "a path that exists",
    received: written === path ? path : `${written}, that is ${path}`,
    remedy: `check the path: ${rule}${elsewhere}${hub}`,
  });
}

export function describeShellRule(): string {
  return `what is typed in a shell starts at the working directory, ${process.cwd()}`;
}

function resolveAs(kind: PathKind, folder: string, value: string): string {
  return isName(kind, value) ? value : resolvePath(folder, value);
}

/** True if the value names no file: a registered algorithm, or an export of a package. */
function isName(kind: PathKind, value: string): boolean {
  return kind === "module" && !/^(\.{1,2}|~)?\/.*#/.test(value);
}

function listPlaces(config: object): Place[] {
  return Object.entries(pathKeys).flatMap(([key, kind]) =>
    listTexts(config, key.split(".")).map((found) => ({ key, kind, ...found })),
  );
}

/** The texts at a key, entry by entry for lists, each with the object or list that contains it. */
function listTexts(
  node: unknown,
  [name, ...rest]: readonly string[],
  above = "",
): Pick<Place, "id" | "value" | "holder" | "name">[] {
  if (name === "*") {
    if (!Array.isArray(node) && !isMapping(node)) return [];
    return Object.entries(node).flatMap(([name, entry]) => listTexts(entry, rest, `${above}${name}.`));
  }
  if (!isMapping(node) || !Object.hasOwn(node, name!)) return [];
  const value = node[name!];
  if (rest.length > 0) return listTexts(value, rest, `${above}${name}.`);
  if (typeof value === "string") return [{ id: `${above}${name}`, value, holder: node, name: name! }];
  if (!Array.isArray(value)) return [];
  return value.flatMap((entry, i) => {
    const holder = value as unknown as Record<string, unknown>;
    return typeof entry === "string" ? [{ id: `${above}${name}.${i}`, value: entry, holder, name: String(i) }] : [];
  });
}
