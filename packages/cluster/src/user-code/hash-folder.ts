import { createHash } from "node:crypto";
import { type Dirent, promises as fs } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { ClusterError } from "@cria/core";

/** Extensions of user code: code, settings, prompts. Data that tools read is not compared. */
const EXTENSIONS = new Set(
  "ts tsx mts cts js jsx mjs cjs json jsonc yaml yml toml py sh lua sql gbnf jinja j2 txt md".split(" "),
);
/** Files next to code that are no part of it. */
const LEFT_OUT =
  /^(readme|license|licence|changelog|contributing)(\.|$)|^(package-lock|npm-shrinkwrap)\.json$|^pnpm-lock\.yaml$/i;
/** Finds a training's config, which travels with the run: another learning rate is no other user code. */
const TRAINING_CONFIG = /(^|[\n{,])\s*["']?actor_rollout_ref["']?\s*:/;

const MOST_FILES = 2000;
const MOST_ENTRIES = 20_000;
const MOST_BYTES = 4 * 2 ** 20;

/**
 * SHA-256 over the sources in a folder: names and contents, in the order of names. It leaves out `node_modules`,
 * folders and files that begin with a dot, files larger than 4 MiB, trainings' configs, lock files and texts about the
 * project.
 * @param except absolute paths of further files and folders to leave out: rows, runs.
 * @returns the hash in hex; undefined for a folder without any source.
 * @throws ClusterError "cluster/user-code-size" for a folder with more than 2,000 sources; errors of reading files.
 */
export async function hashFolder(folder: string, except: readonly string[] = []): Promise<string | undefined> {
  const files: { name: string; content: Buffer }[] = [];
  const refused = new Set(except);
  let entriesLeft = MOST_ENTRIES;
  const visit = async (at: string): Promise<void> => {
    for (const entry of await fs.readdir(at, { withFileTypes: true })) {
      const path = join(at, entry.name);
      if (entry.name.startsWith(".") || entry.name === "node_modules" || refused.has(path)) continue;
      if (entriesLeft-- <= 0) throw tooLarge(folder, `more than ${MOST_ENTRIES} files and folders`);
      if (entry.isDirectory()) await visit(path);
      else if (EXTENSIONS.has(extname(entry.name).slice(1).toLowerCase()) && !LEFT_OUT.test(entry.name))
        await add(path, entry);
    }
  };
  const add = async (path: string, entry: Dirent): Promise<void> => {
    // Links to files count as their targets; links to folders and broken links do not count.
    const found = await fs.stat(path).catch((error) => {
      if (entry.isSymbolicLink()) return undefined;
      throw error;
    });
    if (!found?.isFile() || found.size > MOST_BYTES) return;
    if (files.length >= MOST_FILES) throw tooLarge(folder, `more than ${MOST_FILES} sources`);
    const content = await fs.readFile(path);
    if (/\.(ya?ml|jsonc?)$/i.test(path) && TRAINING_CONFIG.test(content.toString())) return;
    files.push({ name: relative(folder, path).split(sep).join("/"), content });
  };
  await visit(folder);
  if (files.length === 0) return undefined;
  const hash = createHash("sha256");
  for (const { name, content } of files.sort((a, b) => (a.name < b.name ? -1 : 1)))
    hash.update(`${JSON.stringify(name)} ${content.length}\n`).update(content);
  return hash.digest("hex");
}

const tooLarge = (folder: string, received: string) =>
  new ClusterError("is too large for user code", {
    code: "cluster/user-code-size",
    subject: folder,
    expected: `a folder with at most ${MOST_FILES} sources`,
    received,
    remedy: "put the config into a separate folder, together with the code that it names",
  });
