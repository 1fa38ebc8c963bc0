import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { userCacheFolder } from "@cria/core/internal";
import { IMPORT_RULES } from "./python-imports.mjs";
import { REALM } from "./python-realm.mjs";
import { SETUP } from "./python-setup.mjs";
import { type ChildOptions, MAKE_SNAPSHOT, SandboxChild } from "./sandbox-child.js";

/** Made or read once per process. */
let snapshot: Promise<Buffer> | null = null;

/**
 * The memory of a new Python with the imports of most programs, about 30 MiB. Making it takes some seconds, so it is
 * kept for later processes in ~/.cache/cria, or below XDG_CACHE_HOME.
 * @throws Error when Python does not start.
 */
export function takeSnapshot(child: ChildOptions): Promise<Buffer> {
  snapshot ??= readOrMake(child).catch((error) => {
    snapshot = null;
    throw error;
  });
  return snapshot;
}

async function readOrMake(child: ChildOptions): Promise<Buffer> {
  const folder = userCacheFolder("python");
  const pyodide = await readFile(join(child.settings.folder as string, "package.json"));
  const name = `${hash(pyodide, Buffer.from(REALM + SETUP + IMPORT_RULES))
    .toString("hex")
    .slice(0, 16)}.snapshot`;
  const kept = await readKept(join(folder, name));
  if (kept) return kept;
  const made = await new SandboxChild({ ...child, data: MAKE_SNAPSHOT }).takeSnapshot();
  await keep(folder, name, made);
  return made;
}

/** Reads a snapshot, whose last bytes are the hash of the rest. Null when the file is missing or damaged. */
async function readKept(file: string): Promise<Buffer | null> {
  const bytes = await readFile(file).catch(() => null);
  if (!bytes || bytes.length < HASH_BYTES) return null;
  const content = bytes.subarray(0, -HASH_BYTES);
  return hash(content).equals(bytes.subarray(-HASH_BYTES)) ? content : null;
}

/** Keeps a snapshot. If the folder cannot be written, only the next start takes longer. */
async function keep(folder: string, name: string, content: Buffer): Promise<void> {
  const file = join(folder, name);
  const part = `${file}.${process.pid}.part`;
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(part, Buffer.concat([content, hash(content)]), { mode: 0o600 });
    await rename(part, file);
    // Snapshots of other versions.
    const others = (await readdir(folder)).filter((other) => other.endsWith(".snapshot") && other !== name);
    await Promise.all(others.map((other) => rm(join(folder, other), { force: true })));
  } catch {
    await rm(part, { force: true }).catch(() => {});
  }
}

const HASH_BYTES = 32;

function hash(...parts: Buffer[]): Buffer {
  const sum = createHash("sha256");
  for (const part of parts) sum.update(part);
  return sum.digest();
}
