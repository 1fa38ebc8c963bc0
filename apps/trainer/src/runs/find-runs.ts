import type { Dirent } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { basename, join, relative, resolve } from "node:path";
import { isDumpFile } from "./list-dumps.js";
import { readSmallJson } from "./read-small-json.js";

/** A found run: a folder, or a single file of conversations. */
export interface FoundRun {
  /** One segment of an address: the name, with special characters replaced. */
  id: string;
  /** Path of its folder below the searched folder. */
  name: string;
  /** Path as the user gave it. */
  path: string;
}

/** Depth of the search below the given folder: runs/<project>/<experiment>, and names with folders in them. */
const DEEPEST = 5;
/** Most searched folders: the user may name a whole disk. */
const MOST = 20_000;
/** Folders of a run that contain no runs. */
const OWN = new Set(["rollouts", "validation", "checkpoints", "profiles", "tensorboard", "node_modules"]);

/**
 * Runs in folders: a run folder itself, or those below it. Other and unreadable folders are skipped; a folder reached
 * twice (by links) counts once.
 */
export async function findRuns(folders: readonly string[] = ["runs"]): Promise<FoundRun[]> {
  const found = new Map<string, Omit<FoundRun, "id">>();
  const seen = new Set<string>();
  for (const folder of folders) await search(folder, folder, 0, { found, seen });
  const runs = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const taken = new Set<string>();
  return runs.map((run) => {
    let id = makeId(run.name);
    for (let k = 2; taken.has(id); k++) id = `${makeId(run.name)}~${k}`;
    taken.add(id);
    return { id, ...run };
  });
}

interface Search {
  found: Map<string, Omit<FoundRun, "id">>;
  seen: Set<string>;
}

async function search(root: string, path: string, depth: number, { found, seen }: Search): Promise<void> {
  const real = await realpath(path).catch(() => null);
  if (real === null || seen.has(real) || seen.size >= MOST) return;
  seen.add(real);
  const name = nameRun(root, path);
  if (depth === 0 && (await isDumpFile(path))) {
    found.set(real, { name, path });
    return;
  }
  const entries = await readdir(path, { withFileTypes: true }).catch((): Dirent[] => []);
  if (await isRun(path, entries)) found.set(real, { name, path });
  if (depth >= DEEPEST) return;
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith(".") || OWN.has(entry.name)) continue;
    const below = join(path, entry.name);
    if (await isFolder(entry, below)) await search(root, below, depth + 1, { found, seen });
  }
}

async function isFolder(entry: Dirent, path: string): Promise<boolean> {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  return stat(path).then(
    (target) => target.isDirectory(),
    () => false,
  );
}

/** Recognizes a run by the files that commands write: train, sft, demo, rescore, rollout, eval. */
async function isRun(path: string, entries: readonly Dirent[]): Promise<boolean> {
  const names = new Set(entries.map(({ name }) => name));
  if (["metrics.jsonl", "run.json", "live.json", "end.json"].some((name) => names.has(name))) return true;
  if (names.has("rollouts") && (await readdir(join(path, "rollouts")).catch(() => [])).some(isJsonLines)) return true;
  if (names.has("config.json")) {
    // Models have a file of this name too.
    const config = await readSmallJson(join(path, "config.json"));
    if (typeof config === "object" && config !== null && "trainer" in config) return true;
  }
  for (const name of names) if (isJsonLines(name) && (await isDumpFile(join(path, name)))) return true;
  return false;
}

function isJsonLines(name: string): boolean {
  return name.endsWith(".jsonl");
}

function nameRun(root: string, path: string): string {
  const below = relative(root, path).split(/[\\/]/).join("/");
  return below === "" ? basename(resolve(path)) : below;
}

function makeId(name: string): string {
  const id = name.replaceAll("/", "~").replace(/[^\p{L}\p{N}._~-]/gu, "_");
  // Browsers resolve these to the folder above.
  return /^\.+$/.test(id) ? id.replaceAll(".", "_") : id;
}
