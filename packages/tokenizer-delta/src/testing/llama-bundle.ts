import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { TokenizerError } from "@cria/core";

/**
 * Files of the llama.cpp release that ships inside node-llama-cpp (a git bundle of its whole source): real chat
 * templates and vocabularies without a download. They are unpacked one by one into a cache folder of this package.
 */
const MODELS = "models";

/** Source of a chat template, by its file name in `models/templates` without `.jinja`. */
export function readBundledTemplate(name: string): string {
  return readFileSync(unpack(`${MODELS}/templates/${name}.jinja`), "utf8");
}

/** Path of a vocabulary without weights, by its name in `models/ggml-vocab-*.gguf`. */
export function unpackBundledVocabulary(name: string): string {
  return unpack(`${MODELS}/ggml-vocab-${name}.gguf`);
}

/** Names of all chat templates of the release, for `readBundledTemplate`. */
export function listBundledTemplates(): string[] {
  const { repository } = openRepository();
  return git("--git-dir", repository, "ls-tree", "--name-only", "HEAD", `${MODELS}/templates/`)
    .toString()
    .split("\n")
    .filter((path) => path.endsWith(".jinja"))
    .map((path) => basename(path, ".jinja"));
}

/** Path of the unpacked file. @throws TokenizerError when the release has no such file. */
function unpack(path: string): string {
  const { cache, repository, version } = openRepository();
  const target = join(cache, path);
  if (existsSync(target)) return target;
  let content: Buffer;
  try {
    content = git("--git-dir", repository, "show", `HEAD:${path}`);
  } catch (cause) {
    throw new TokenizerError("is not in the llama.cpp release", {
      code: "tokenizer/not-bundled",
      subject: path,
      expected: `a file of the source inside node-llama-cpp ${version}`,
      cause,
    });
  }
  mkdirSync(dirname(target), { recursive: true });
  const temporary = `${target}.${process.pid}.tmp`;
  writeFileSync(temporary, content);
  moveInto(temporary, target);
  return target;
}

function openRepository(): { cache: string; repository: string; version: string } {
  const { root, version } = findNodeLlamaCpp();
  const cache = join(findPackageRoot(), ".cache", `llama.cpp-${version}`);
  const repository = join(cache, "source.git");
  if (!existsSync(repository)) {
    const temporary = `${repository}.${process.pid}.tmp`;
    mkdirSync(cache, { recursive: true });
    git("clone", "--quiet", "--bare", join(root, "llama", "gitRelease.bundle"), temporary);
    moveInto(temporary, repository);
  }
  return { cache, repository, version };
}

/** Several test files may unpack at the same time: the first one wins. */
function moveInto(temporary: string, target: string): void {
  try {
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    if (!existsSync(target)) throw error;
  }
}

function git(...args: string[]): Buffer {
  return execFileSync("git", args, { maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "pipe"] });
}

function findNodeLlamaCpp(): { root: string; version: string } {
  // Its exports map hides package.json, so this walks up from the entry point.
  let root = dirname(createRequire(import.meta.url).resolve("node-llama-cpp"));
  while (!existsSync(join(root, "llama", "gitRelease.bundle"))) root = dirname(root);
  return { root, version: JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version };
}

function findPackageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) folder = dirname(folder);
  return folder;
}
