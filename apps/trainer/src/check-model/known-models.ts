import { readFile, stat } from "node:fs/promises";
import { writeFileAtomically } from "@cria/core";
import { userCacheFolder } from "@cria/core/internal";

/** Number of remembered files, the newest last. */
const MOST = 100;
/** Bytes: smaller files, such as the embedded policy, are toys and tests. */
const SMALL = 32e6;

const findFile = () => userCacheFolder("known-models.json");

/**
 * True if a training should suggest `cria check-model`: the file, identified by path, size and date, was neither
 * checked nor trained here before. From then on it is known.
 */
export async function isNewModel(path: string): Promise<boolean> {
  const key = await describeFile(path);
  if (key === null || (await readKnown()).includes(key)) return false;
  await rememberModel(path);
  return true;
}

/** Remembers a model. If the folder cannot be written, `train` only repeats its suggestion. */
export async function rememberModel(path: string): Promise<void> {
  const key = await describeFile(path);
  if (key === null) return;
  const others = (await readKnown()).filter((known) => known !== key);
  await writeFileAtomically(findFile(), JSON.stringify([...others, key].slice(-MOST))).catch(() => undefined);
}

async function describeFile(path: string): Promise<string | null> {
  const found = await stat(path).catch(() => null);
  return found === null || found.size < SMALL ? null : `${path} ${found.size} ${found.mtimeMs}`;
}

async function readKnown(): Promise<string[]> {
  try {
    const known: unknown = JSON.parse(await readFile(findFile(), "utf8"));
    return Array.isArray(known) ? known.filter((key) => typeof key === "string") : [];
  } catch {
    return [];
  }
}
