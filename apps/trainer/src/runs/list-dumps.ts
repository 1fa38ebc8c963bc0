import { open, readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { DumpRef } from "@cria/viewer/api";

/** A file of conversations, and its path. */
export interface DumpFile extends DumpRef {
  file: string;
  /** Modification time, in milliseconds since 1970. */
  modified: number;
}

/** Most files directly in a run's folder that are checked: commands write one or two there. */
const MOST_LOOSE = 200;

/**
 * A run's dumps, in the order of steps, including those at another place in its config.
 * @param path a run folder, or one file of conversations.
 */
export async function listDumps(path: string, config: Record<string, unknown> | null): Promise<DumpFile[]> {
  const trainer = (config?.trainer ?? {}) as Record<string, unknown>;
  const own = [
    ...(await readFolder(folderOf(path, trainer.rollout_data_dir, "rollouts"), "training")),
    ...(await readFolder(folderOf(path, trainer.validation_data_dir, "validation"), "validation")),
    ...(await listLoose(path)),
  ];
  return own.sort((a, b) => place(a) - place(b) || rank(a) - rank(b) || (a.id < b.id ? -1 : 1));
}

function folderOf(path: string, elsewhere: unknown, own: string): string {
  return typeof elsewhere === "string" ? elsewhere : join(path, own);
}

async function readFolder(folder: string, kind: "training" | "validation"): Promise<DumpFile[]> {
  const names = (await readdir(folder).catch((): string[] => [])).filter((name) => name.endsWith(".jsonl"));
  const dumps = await Promise.all(names.map((name) => describe(join(folder, name), nameDump(name, kind))));
  return dumps.flatMap((dump) => dump ?? []);
}

function nameDump(name: string, kind: "training" | "validation"): Pick<DumpRef, "id" | "kind" | "step"> {
  const base = name.slice(0, -".jsonl".length);
  const digits = /^(?:asked-|val_only-)?(\d+)$/.exec(base)?.[1];
  const step = digits === undefined ? null : Number(digits);
  if (kind === "training") return { id: clean(base), kind, step };
  if (base.startsWith("asked-")) return { id: clean(base), kind: "asked", step };
  return { id: `validation-${clean(base)}`, kind, step };
}

/** Files of `cria rollout` and `cria eval` in the folder itself, or the given file. */
async function listLoose(path: string): Promise<DumpFile[]> {
  const isFile = await stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
  const names = isFile ? [path] : (await readdir(path).catch((): string[] => [])).filter((n) => n.endsWith(".jsonl"));
  const files = names.map((name) => (isFile ? name : join(path, name))).slice(0, MOST_LOOSE);
  const dumps = files.map(async (file) => {
    if (!isFile && !(await isDumpFile(file))) return [];
    const dump = await describe(file, { id: clean(basename(file, ".jsonl")), kind: "rollout", step: null });
    return dump ?? [];
  });
  return (await Promise.all(dumps)).flat();
}

async function describe(file: string, given: Pick<DumpRef, "id" | "kind" | "step">): Promise<DumpFile | null> {
  const found = await stat(file).catch(() => null);
  return found?.isFile() ? { ...given, size: found.size, file, modified: found.mtimeMs } : null;
}

/** True if a file begins like a dump: version 1 began with the prompt's uid. */
export async function isDumpFile(path: string): Promise<boolean> {
  if (!path.endsWith(".jsonl")) return false;
  const file = await open(path, "r").catch(() => null);
  try {
    const { bytesRead, buffer } = (await file?.read(Buffer.alloc(64), 0, 64, 0)) ?? { bytesRead: 0 };
    const head = buffer?.toString("utf8", 0, bytesRead) ?? "";
    return /^\s*\{\s*"(format_version"\s*:\s*\d|uid"\s*:\s*")/.test(head);
  } catch {
    return false;
  } finally {
    await file?.close();
  }
}

function clean(name: string): string {
  return name.replace(/[^\p{L}\p{N}._-]/gu, "_").replace(/^\.+/, "_");
}

function place({ step }: DumpRef): number {
  return step ?? Number.POSITIVE_INFINITY;
}

/** A step's own conversations come before the validation after it. */
function rank({ kind }: DumpRef): number {
  return ["training", "validation", "asked", "rollout"].indexOf(kind);
}
