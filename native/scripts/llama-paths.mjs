// Where the pinned llama.cpp release lies: its prebuilt libraries (a platform package of node-llama-cpp) and its source
// (a git bundle inside node-llama-cpp), from which the matching headers are unpacked once.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
export const nativeRoot = dirname(dirname(fileURLToPath(import.meta.url)));

export class BuildError extends Error {}

function findNodeLlamaCpp() {
  // Its exports map hides package.json, so walk up from the entry point.
  let dir = dirname(require.resolve("node-llama-cpp"));
  while (!existsSync(join(dir, "llama", "gitRelease.bundle"))) {
    const parent = dirname(dir);
    if (parent === dir)
      throw new BuildError("node-llama-cpp is installed without llama/gitRelease.bundle; reinstall it");
    dir = parent;
  }
  return dir;
}

/** Folder of the prebuilt libraries for this platform, e.g. .../@node-llama-cpp/linux-x64/bins/linux-x64. */
export function findPrebuiltBins() {
  const platform = { linux: "linux", darwin: "mac", win32: "win" }[process.platform];
  const names =
    process.platform === "darwin" && process.arch === "arm64" ? ["mac-arm64-metal"] : [`${platform}-${process.arch}`];
  const root = findNodeLlamaCpp();
  for (const name of names) {
    for (const base of [join(root, "..", "@node-llama-cpp"), join(root, "node_modules", "@node-llama-cpp")]) {
      const dir = join(base, name, "bins", name);
      if (existsSync(dir)) return dir;
    }
  }
  throw new BuildError(
    `no prebuilt llama.cpp for ${process.platform}-${process.arch} beside node-llama-cpp (looked for ${names.join(", ")}).\n` +
      "Install optional dependencies too, or build from source: CRIA_BUILD_LLAMA=source",
  );
}

export function readNodeLlamaCppVersion() {
  return JSON.parse(readFileSync(join(findNodeLlamaCpp(), "package.json"), "utf8")).version;
}

/**
 * The llama.cpp source tree of the pinned release, unpacked once to native/.llama/<version>.
 * With `whole` every file, else the headers that the addon compiles against.
 */
export function unpackLlamaSource({ whole }) {
  const root = findNodeLlamaCpp();
  const version = readNodeLlamaCppVersion();
  const target = join(nativeRoot, ".llama", `${version}${whole ? "-source" : ""}`);
  if (existsSync(join(target, "include", "llama.h"))) return target;
  const temporary = `${target}.${process.pid}.tmp`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(dirname(target), { recursive: true });
  const git = (...args) => execFileSync("git", args, { stdio: ["ignore", "ignore", "pipe"] });
  try {
    git("clone", "--quiet", "--no-checkout", join(root, "llama", "gitRelease.bundle"), temporary);
    const paths = whole
      ? ["."]
      : ["CMakeLists.txt", "include", "src", "ggml/CMakeLists.txt", "ggml/include", "ggml/src/*.h"];
    git("-C", temporary, "checkout", "--quiet", "HEAD", "--", ...paths);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw new BuildError(`could not unpack the llama.cpp source with git: ${error.message}\nIs git installed?`);
  }
  if (!whole) rmSync(join(temporary, ".git"), { recursive: true, force: true });
  rmSync(target, { recursive: true, force: true });
  renameSync(temporary, target);
  return target;
}

/** `{llama, ggml}` version strings that the headers belong to. */
export function readHeaderVersions(source) {
  const read = (file, prefix) => {
    const text = readFileSync(join(source, file), "utf8");
    return ["MAJOR", "MINOR", "PATCH"]
      .map((part) => new RegExp(`set\\(${prefix}_VERSION_${part}\\s+(\\d+)\\)`).exec(text)?.[1] ?? "?")
      .join(".");
  };
  return { llama: read("CMakeLists.txt", "LLAMA"), ggml: read("ggml/CMakeLists.txt", "GGML") };
}

/** Path of a library in `bins` whatever release suffix its name carries (libllama.so, libllama.v0.5.0.so). */
export function findLibrary(bins, name) {
  const pattern = new RegExp(`^(lib)?${name}(\\.v[\\d.]+)?\\.(so|dylib|lib)$`);
  const file = readdirSync(bins).find((entry) => pattern.test(entry));
  if (!file) throw new BuildError(`no library "${name}" in ${bins}`);
  return join(bins, file);
}
