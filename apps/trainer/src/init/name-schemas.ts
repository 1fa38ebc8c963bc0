import { existsSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

/** Where `npm install` puts the JSON Schemas in a project of its own. */
const INSTALLED = "./node_modules/cria/schema";

/**
 * Lets each YAML file of an environment begin with the JSON Schema that editors check and complete it by.
 * @param files text by name; the others stay as they are.
 * @param folder where they are written.
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

/** Seen from `from`: those of the `cria` that is installed in it or above it, as in a clone; else where it will be. */
function findSchemas(from: string): string {
  for (let folder = from; folder !== dirname(folder); folder = dirname(folder)) {
    const installed = join(folder, INSTALLED);
    if (folder !== from && existsSync(installed)) return relative(from, installed).split(sep).join("/");
  }
  return INSTALLED;
}
