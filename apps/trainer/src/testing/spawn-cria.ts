import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Program and first arguments of `cria` as a process of its own, on the sources: nothing has to be built for it. */
export const criaCommand: readonly string[] = [
  process.execPath,
  "--conditions=cria-source",
  `--import=${pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href}`,
  join(import.meta.dirname, "..", "cli.ts"),
];
