import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { configFiles, makeFileSchema } from "./config-files.js";
import { renderMarkdown } from "./render-markdown.js";

/** What is made from the schemas of configs: each file's path from the package's folder, and its text. */
export function makeReferenceFiles(): Record<string, string> {
  const schemas = configFiles.map((file) => [
    `schema/${file.name}.json`,
    `${JSON.stringify(makeFileSchema(file), null, 1)}\n`,
  ]);
  return { ...Object.fromEntries(schemas), "../../docs/config.md": renderMarkdown() };
}

/** Writes them. @param folder of the package. */
export function writeReferenceFiles(folder: string): void {
  for (const [path, text] of Object.entries(makeReferenceFiles())) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
