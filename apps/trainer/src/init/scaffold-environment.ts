import { existsSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ConfigError } from "@cria/core";
import { writeAtomically } from "../train/run-folder.js";
import { makeRows } from "./make-rows.js";
import { makeConfig, makeInteractionsFile, toolsTemplate } from "./templates/config.js";
import { interactionTemplate } from "./templates/interaction.js";
import { gitignoreTemplate, makePackage, testTemplate } from "./templates/package-files.js";
import { makeReadme } from "./templates/readme.js";
import { toolTemplate } from "./templates/tool.js";

export interface Scaffold {
  /** Name of the environment: its data source and its interaction. */
  name: string;
  folder: string;
  files: string[];
}

/**
 * Writes a new environment that runs as it is on the embedded policy.
 * @throws ConfigError when the folder holds something, or its name cannot be a data source; DataError when it cannot be
 * written.
 */
export async function scaffoldEnvironment(folder: string): Promise<Scaffold> {
  const target = resolve(folder);
  const name = readName(target);
  if (existsSync(target) && (await readdir(target)).length > 0) {
    throw new ConfigError("is not empty", {
      code: "config/folder-not-empty",
      subject: folder,
      expected: "a new or empty folder",
      remedy: "choose another name: nothing is overwritten",
    });
  }
  const lines = (rows: readonly unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  const files: Record<string, string> = {
    "README.md": makeReadme(name),
    "package.json": makePackage(name),
    ".gitignore": gitignoreTemplate,
    "tool.ts": toolTemplate,
    "tools.yaml": toolsTemplate,
    "interaction.ts": interactionTemplate,
    "interaction.yaml": makeInteractionsFile(name),
    "config.yaml": makeConfig(name, findEmbeddedPolicy(target)),
    "data/train.jsonl": lines(makeRows(name, 256, "train")),
    "data/val.jsonl": lines(makeRows(name, 32, "val")),
    "environment.test.mjs": testTemplate,
  };
  await mkdir(target, { recursive: true });
  for (const [file, text] of Object.entries(files)) await writeAtomically(join(target, file), text);
  return { name, folder: target, files: Object.keys(files) };
}

function readName(folder: string): string {
  const name = basename(folder).toLowerCase();
  if (/^[a-z0-9][a-z0-9_-]*$/.test(name)) return name;
  throw new ConfigError("cannot be the name of an environment", {
    code: "config/bad-argument",
    subject: basename(folder),
    expected: "letters, digits, - and _",
  });
}

/** The policy that comes with Cria, seen from a folder; searched upwards from this program. */
function findEmbeddedPolicy(from: string): string {
  const path = join("models", "cria-tiny.gguf");
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const file = join(folder, path);
    if (existsSync(file)) {
      const near = relative(from, file);
      // A path through the root says less than the whole one, and breaks as easily.
      return near.split("..").length > 4 ? file : near;
    }
    if (folder !== dirname(folder)) continue;
    throw new ConfigError("is not here", {
      code: "config/policy-missing",
      subject: "the embedded policy",
      expected: `${path} in a folder above this program`,
    });
  }
}
