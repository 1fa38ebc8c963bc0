import { readFile } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { ClusterError } from "@cria/core";
import { isAddress } from "@cria/hub/internal";
import type { Task, TrainConfig } from "@cria/trainer";
import { resolvePath } from "@cria/trainer/internal";
import { z } from "zod";
import type { UserCodeId } from "../jobs/run-description.js";
import { version } from "../version.js";
import { hashFolder } from "./hash-folder.js";
import { checkInside, listConversationFiles, listLossFiles } from "./named-files.js";

/** The package that stands for no user code: every worker has it. */
export const BUILT_IN = "cria";
/** Name of a task without a name. */
const NAMELESS = "task";

const packageSchema = z.object({ name: z.string().max(214), version: z.string().max(100) });

/**
 * Identifies the user code of a training for workers. A task in memory has a name. A config that names no user code
 * needs nothing (`BUILT_IN`); one in an installed package is identified by the package's version; any other by the
 * hash of its folder.
 * @param folder of the config.
 * @throws ClusterError for a config whose code lies outside its folder, and for a folder that is too large; errors of
 * reading.
 */
export async function identifyUserCode(config: TrainConfig, folder: string, task?: Task<object>): Promise<UserCodeId> {
  if (task) return { kind: "task", name: nameTask(task) };
  const files = [...listConversationFiles(config), ...listLossFiles(config)];
  if (files.length === 0) return { kind: "package", name: BUILT_IN, version, folder: "" };
  const root = resolve(folder);
  checkInside(root, files);
  const installed = await findPackageOf(root);
  if (installed) return installed;
  const hash = await hashFolder(root, listOutputs(config, root));
  if (hash !== undefined) return { kind: "folder", hash };
  throw new ClusterError("has no sources by which workers could identify it", {
    code: "cluster/no-sources",
    subject: root,
    expected: `a folder with ${files.map(({ value }) => value).join(", ")}`,
    received: "none of it",
  });
}

/** The name under which workers are started with the same task. */
export const nameTask = ({ definition }: Task<object>): string => (definition.name || NAMELESS).slice(0, 200);

/**
 * Paths of rows and runs, which change and are no part of the user code.
 * @returns absolute paths.
 */
export function listOutputs({ data, trainer }: TrainConfig, folder: string): string[] {
  const { default_local_dir, project_name, rollout_data_dir, validation_data_dir } = trainer;
  const runs = [default_local_dir, join(default_local_dir, project_name), rollout_data_dir, validation_data_dir];
  return [data.train_files, data.val_files, data.cache_dir, ...runs]
    .flat()
    .filter((path): path is string => typeof path === "string" && !isAddress(path))
    .map((path) => resolvePath(folder, path));
}

/** The package below a `node_modules` that contains a folder; its manifest may lie above the folder. */
async function findPackageOf(folder: string): Promise<UserCodeId | undefined> {
  if (!folder.split(sep).includes("node_modules")) return undefined;
  for (let at = folder; at.split(sep).includes("node_modules"); at = dirname(at)) {
    const text = await readFile(join(at, "package.json"), "utf8").catch(() => undefined);
    const found = text === undefined ? undefined : readPackage(text);
    // A manifest in a package's subfolder may only give its modules' type.
    if (found) return { kind: "package", ...found, folder: relative(at, folder).split(sep).join("/") };
  }
  return undefined;
}

/** Name and version in a package's manifest; undefined for a manifest without a name. */
export function readPackage(text: string): z.infer<typeof packageSchema> | undefined {
  try {
    return packageSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
