import { readdir, readFile, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Task, TrainConfig } from "@cria/trainer";
import { cleanText } from "../bus/job-record.js";
import type { UserCodeId } from "../jobs/run-description.js";
import { hashFolder } from "./hash-folder.js";
import { BUILT_IN, listOutputs, nameTask, readPackage } from "./identify-user-code.js";
import { liesIn } from "./named-files.js";

/** The places in which a worker searches user code. */
export interface UserCodePlaces {
  /** A folder with user code, or a folder of such folders. */
  folder: string;
  /** Tasks in memory, by name. */
  tasks?: readonly Task<object>[];
}

export interface FoundUserCode {
  /** Base folder of the config's relative paths. */
  folder: string;
  task?: Task<object>;
}

/** Most folders below a worker's that are searched. */
const MOST_FOLDERS = 200;

/**
 * Finds the user code that a run names, or returns a text about why it is missing and what to do.
 * @param config its rows and runs are not part of the user code.
 */
export async function findUserCode(
  id: UserCodeId,
  config: TrainConfig,
  { folder, tasks = [] }: UserCodePlaces,
): Promise<FoundUserCode | string> {
  const root = resolve(folder);
  switch (id.kind) {
    case "task": {
      const task = tasks.find((given) => nameTask(given) === id.name);
      if (task) return { folder: root, task };
      const names = tasks.map((given) => `"${nameTask(given)}"`).join(", ") || "none";
      return `no task "${cleanText(id.name)}" in memory (${names}): start a worker from the program that defines it`;
    }
    case "package":
      return id.name === BUILT_IN && id.folder === "" ? { folder: root } : findPackage(id, root);
    default:
      return findFolder(id.hash, config, root);
  }
}

async function findFolder(hash: string, config: TrainConfig, root: string): Promise<FoundUserCode | string> {
  const below = await readdir(root, { withFileTypes: true }).catch(() => []);
  const folders = below
    .filter((entry) => !entry.isFile() && !entry.name.startsWith(".") && entry.name !== "node_modules")
    .map((entry) => join(root, entry.name))
    .sort()
    .slice(0, MOST_FOLDERS);
  for (const folder of [root, ...folders]) {
    // A folder without user code, or one that is too large, may lie next to a matching one.
    const found = await hashFolder(folder, listOutputs(config, folder)).catch(() => undefined);
    if (found === hash) return { folder };
  }
  return `no user code ${hash.slice(0, 12)} in ${root} or a folder in it: copy the coordinator's config folder there, unchanged`;
}

async function findPackage(
  { name, version, folder }: Extract<UserCodeId, { kind: "package" }>,
  root: string,
): Promise<FoundUserCode | string> {
  const called = cleanText(`${name}@${version}`);
  if (!/^(@[\w.~-]+\/)?[\w~-][\w.~-]*$/.test(name)) return `no package has the name ${called}`;
  let other: string | undefined;
  for (let at = root; ; at = dirname(at)) {
    const place = join(at, "node_modules", name);
    const text = await readFile(join(place, "package.json"), "utf8").catch(() => undefined);
    const found = text === undefined ? undefined : readPackage(text);
    if (found?.name === name && found.version === version) {
      const home = await realpath(place);
      const inside = resolve(home, folder);
      return liesIn(home, inside) ? { folder: inside } : `the folder ${cleanText(folder)} lies outside of ${called}`;
    }
    other ??= found?.version;
    if (dirname(at) === at) break;
  }
  const there = other === undefined ? "it is not installed" : `${other} is installed`;
  return `no package ${called} in ${root}: ${there}; npm install ${called}`;
}
