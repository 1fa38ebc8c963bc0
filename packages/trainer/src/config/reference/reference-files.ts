import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { configFiles, makeFileSchema } from "./config-files.js";
import { renderMarkdown } from "./render-markdown.js";
import { renderMetrics } from "./render-metrics.js";
import { renderVerlKeys } from "./render-verl-keys.js";

/**
 * JSON Schemas and pages, generated from the schemas of configs and the tables of verl's keys and of metrics: text by
 * path relative to the package's folder.
 */
export function makeReferenceFiles(): Record<string, string> {
  const schemas = configFiles.map((file) => [
    `schema/${file.name}.json`,
    `${JSON.stringify(makeFileSchema(file), null, 1)}\n`,
  ]);
  const pages = { config: renderMarkdown(), metrics: renderMetrics(), "verl-keys": renderVerlKeys() };
  const docs = Object.entries(pages).map(([name, text]) => [`../../docs/${name}.md`, text]);
  return Object.fromEntries([...schemas, ...docs]);
}

/** Writes these files. @param folder the package's folder. */
export function writeReferenceFiles(folder: string): void {
  for (const [path, text] of Object.entries(makeReferenceFiles())) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
