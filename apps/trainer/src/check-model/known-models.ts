import { readFile, stat } from "node:fs/promises";
import { writeFileAtomically } from "@cria/core";
import { userCacheFolder } from "@cria/core/internal";

/** Files whose name, size and date are known; the newest last. */
const MOST = 100;
/** Bytes: smaller files are toys and tests, as the embedded policy is. */
const SMALL = 32e6;

const findFile = () => userCacheFolder("known-models.json");

/**
 * Whether a training should point to `cria check-model`: the file was neither checked nor trained here before, as far as its path, size
 * and date tell. From then on it is known.
 */
export async function isNewModel(path: string): Promise<boolean> {
  const key = await describeFile(path);
  if (key === null || (await readKnown()).includes(key)) return false;
  await rememberModel(path);
  return true;
}

/** A folder that cannot be written makes `train` say it again, and nothing else. */
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
