import { existsSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

/** Folder of the JSON Schemas after `npm install` in a separate project. */
const INSTALLED = "./node_modules/cria/schema";

/**
 * Adds to each YAML file of an environment a first line with the JSON Schema for editors.
 * @param files text by name; the others stay unchanged.
 * @param folder of the environment.
 */
export function nameSchemas(files: Readonly<Record<string, string>>, folder: string): Record<string, string> {
  const schemas = findSchemas(folder);
  return Object.fromEntries(
    Object.entries(files).map(([file, text]) => {
      if (!file.endsWith(".yaml")) return [file, text];
      return [file, `# yaml-language-server: $schema=${schemas}/${findKind(text)}.json\n${text}`];
    }),
  );
}

function findKind(text: string): string {
  if (/^tools:/m.test(text)) return "tools";
  return /^interaction:/m.test(text) ? "interactions" : "train";
}

/**
 * Path from `from` to the schemas: those of the `cria` installed in it or above it, as in a clone; else their future
 * place.
 */
function findSchemas(from: string): string {
  for (let folder = from; folder !== dirname(folder); folder = dirname(folder)) {
    const installed = join(folder, INSTALLED);
    if (folder !== from && existsSync(installed)) return relative(from, installed).split(sep).join("/");
  }
  return INSTALLED;
}
