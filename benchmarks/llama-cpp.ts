/**
 * Programs against llama.cpp: its source comes from the git bundle inside node-llama-cpp, its libraries are the prebuilt
 * ones that our addon and node-llama-cpp itself run on. So each peer differs in its own code alone.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
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
async function getSourceTree(): Promise<string> {
  const repository = await openSource();
  return cached(join(folder, "tree"), (temporary) => {
    const paths = ["include", "ggml/include", "common", "vendor", "tools/batched-bench"];
    execFileSync("git", ["clone", "--quiet", "--no-checkout", "--shared", repository, temporary]);
    execFileSync("git", ["-C", temporary, "checkout", "--quiet", "HEAD", "--", ...paths]);
  });
}

export interface Program {
  name: string;
  /** C++ files; relative ones are of llama.cpp's source. */
  sources: string[];
  /** Links `common/` too, prebuilt by node-llama-cpp. */
  common?: boolean;
}

/** Path of the program, compiled with the system's C++ compiler the first time. */
export async function getProgram(
  { name, sources, common = false }: Program,
  log: (text: string) => void,
): Promise<string> {
  const tree = await getSourceTree();
  const { librariesFolder } = getRuntimeInfo();
  return cached(join(folder, name), (temporary) => {
    log(`compiling ${name}`);
    const find = (library: string) => {
      const file = readdirSync(librariesFolder).find((entry) =>
        new RegExp(`^lib${library}(\\.v[\\d.]+)?\\.so$`).test(entry),
      );
      if (!file) throw new Error(`no lib${library} in ${librariesFolder}`);
      return join(librariesFolder, file);
    };
    const libraries = [...(common ? ["llama-common"] : []), "llama", "ggml", "ggml-base"].map(find);
    const includes = ["include", "ggml/include", "common", "vendor"].map((path) => `-I${join(tree, path)}`);
    const paths = sources.map((path) => (path.startsWith("/") ? path : join(tree, path)));
    const flags = ["-O2", "-std=c++17", `-Wl,-rpath,${librariesFolder}`, "-pthread"];
    execFileSync(process.env.CXX ?? "c++", [...flags, ...includes, ...paths, ...libraries, "-o", temporary], {
      stdio: ["ignore", "inherit", "inherit"],
    });
  });
}
