/**
 * Builds programs against llama.cpp: its source comes from the git bundle inside node-llama-cpp, its libraries are the
 * prebuilt ones that our addon and node-llama-cpp also use. So peers differ only in their own code.
 */
import { execFile, execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { getRuntimeInfo } from "@cria/engine";
import { cached } from "./cache.js";

/** Folder of node-llama-cpp, which hides its package.json. */
function findNodeLlamaCpp(): string {
  let root = dirname(createRequire(import.meta.url).resolve("node-llama-cpp"));
  while (!existsSync(join(root, "llama", "gitRelease.bundle"))) root = dirname(root);
  return root;
}

/** Version of node-llama-cpp, which pins llama.cpp's. */
export const nodeLlamaCppVersion: string = JSON.parse(
  readFileSync(join(findNodeLlamaCpp(), "package.json"), "utf8"),
).version;

const folder = `llama.cpp-${nodeLlamaCppVersion}`;

async function openSource(): Promise<string> {
  return cached(join(folder, "source.git"), (temporary) => {
    execFileSync("git", [
      "clone",
      "--quiet",
      "--bare",
      join(findNodeLlamaCpp(), "llama", "gitRelease.bundle"),
      temporary,
    ]);
  });
}

/** A file of the release's source, unpacked. */
export async function getSourceFile(path: string): Promise<string> {
  const repository = await openSource();
  return cached(join(folder, path), (temporary) => {
    const content = execFileSync("git", ["--git-dir", repository, "show", `HEAD:${path}`], { maxBuffer: 1 << 26 });
    writeFileSync(temporary, content);
  });
}

/** The release's headers, and all of `common/` (sources too, of which nothing is compiled). */
export async function getSourceTree(): Promise<string> {
  const repository = await openSource();
  return cached(join(folder, "sources"), (temporary) => {
    const tools = ["batched-bench", "server", "mtmd", "ui/ui.h.in", "ui/ui.cpp.in"].map((path) => `tools/${path}`);
    const paths = ["include", "ggml/include", "common", "vendor", ...tools];
    execFileSync("git", ["clone", "--quiet", "--no-checkout", "--shared", repository, temporary]);
    execFileSync("git", ["-C", temporary, "checkout", "--quiet", "HEAD", "--", ...paths]);
  });
}

export interface Program {
  name: string;
  /** C++ and C files; relative ones are of llama.cpp's source. */
  sources: string[];
  /** Links `common/` too, prebuilt by node-llama-cpp. */
  common?: boolean;
  /** Folders with headers besides the public ones; relative ones are of llama.cpp's source. */
  includes?: readonly string[];
  /** More flags of the compiler. */
  flags?: readonly string[];
}

/** Path of the program, compiled with the system's C++ compiler the first time. */
export async function getProgram(program: Program, log: (text: string) => void): Promise<string> {
  const { name, sources, common = false, includes = [], flags = [] } = program;
  const tree = await getSourceTree();
  const { librariesFolder } = getRuntimeInfo();
  const find = (library: string) => {
    const file = readdirSync(librariesFolder).find((entry) =>
      new RegExp(`^lib${library}(\\.v[\\d.]+)?\\.so$`).test(entry),
    );
    if (!file) throw new Error(`no lib${library} in ${librariesFolder}`);
    return join(librariesFolder, file);
  };
  return cached(join(folder, name), async (temporary) => {
    log(`compiling ${name}, ${sources.length} files`);
    const folders = ["include", "ggml/include", "common", "vendor", ...includes];
    const compile = (source: string) =>
      cached(join(folder, `${name}.objects`, `${basename(source)}.o`), (object) =>
        runCompiler([
          ...(source.endsWith(".c") ? ["-x", "c"] : ["-std=c++17"]),
          ...["-O2", "-pthread", "-c", resolve(tree, source), "-o", object, ...flags],
          ...folders.map((path) => `-I${resolve(tree, path)}`),
        ]),
      );
    const objects: string[] = [];
    const waiting = [...sources];
    const work = async () => {
      for (let source = waiting.shift(); source !== undefined; source = waiting.shift())
        objects.push(await compile(source));
    };
    await Promise.all(Array.from({ length: availableParallelism() }, work));
    const libraries = [...(common ? ["llama-common"] : []), "llama", "ggml", "ggml-base"].map(find);
    const rpath = `-Wl,-rpath,${librariesFolder}`;
    await runCompiler([...objects, ...libraries, rpath, "-pthread", "-o", temporary]);
  });
}

async function runCompiler(args: readonly string[]): Promise<void> {
  await promisify(execFile)(process.env.CXX ?? "c++", [...args], { maxBuffer: 1 << 26 });
}
