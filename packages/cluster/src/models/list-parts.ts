import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** The files of a model: llama.cpp loads a split one by its first part, `name-00001-of-00003.gguf`. */
export function listParts(path: string): string[] {
  const found = /^(?<stem>.*)-00001-of-(?<count>\d{5})\.gguf$/.exec(basename(path))?.groups;
  if (!found) return [path];
  const count = Number(found.count);
  const parts = Array.from({ length: Math.min(count, 1000) }, (_, i) =>
    join(dirname(path), `${found.stem}-${String(i + 1).padStart(5, "0")}-of-${found.count}.gguf`),
  );
  return parts.every((part) => existsSync(part)) ? parts : [path];
}
