// Paths of the pinned llama.cpp release: its prebuilt libraries (a platform package of node-llama-cpp), its headers (in
// native/llama where this package was installed, else unpacked once), its source (a git bundle inside node-llama-cpp).
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describeTarget, thisTarget } from "./targets.mjs";

const require = createRequire(import.meta.url);
export const nativeRoot = dirname(dirname(fileURLToPath(import.meta.url)));

export class BuildError extends Error {}

/** The release of node-llama-cpp, and so of llama.cpp, that the addon is written for. */
export function readLlamaPin() {
  const manifest = JSON.parse(readFileSync(join(nativeRoot, "package.json"), "utf8"));
  return manifest.optionalDependencies["@node-llama-cpp/linux-x64"];
}

/**
 * Folder of an installed package, found through one of its files, because exports maps hide package.json. Null when not
 * installed.
 */
function findPackage(name) {
  let dir;
  try {
    dir = dirname(require.resolve(name));
  } catch {
    return null;
  }
  while (!existsSync(join(dir, "package.json"))) dir = dirname(dir);
  const { version } = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
  if (version === readLlamaPin()) return dir;
  throw new BuildError(`${name} is installed at ${version}, but the addon needs exactly ${readLlamaPin()}`);
}

function findNodeLlamaCpp() {
  const root = findPackage("node-llama-cpp");
  if (root && existsSync(join(root, "llama", "gitRelease.bundle"))) return root;
  throw new BuildError(
    `the source of llama.cpp is not here; install it with: npm install node-llama-cpp@${readLlamaPin()}`,
  );
}

/** node-llama-cpp's name for a target's prebuilt libraries. */
export function namePrebuiltBins(target = thisTarget) {
  const { platform, arch } = describeTarget(target);
  if (target === "darwin-arm64") return "mac-arm64-metal";
  return `${{ linux: "linux", darwin: "mac", win32: "win" }[platform]}-${arch}`;
}

/** Whether node-llama-cpp publishes libraries for a target, installed or not. */
export const hasPrebuiltBins = (target = thisTarget) => !describeTarget(target).ownLibraries;

/** Folder of a target's prebuilt libraries, e.g. .../@node-llama-cpp/linux-x64/bins/linux-x64. */
export function findPrebuiltBins(target = thisTarget) {
  const name = namePrebuiltBins(target);
  const root = findPackage(`@node-llama-cpp/${name}`);
  if (root && existsSync(join(root, "bins", name))) return join(root, "bins", name);
  throw new BuildError(
    `no prebuilt llama.cpp for ${target}: @node-llama-cpp/${name} is not installed.\n` +
      `Install with optional packages, or npm install @node-llama-cpp/${name}@${readLlamaPin()},\n` +
      `or build llama.cpp from source: CRIA_BUILD_LLAMA=source, with node-llama-cpp@${readLlamaPin()}`,
  );
}

/** The headers that the addon compiles against. */
const HEADERS = ["LICENSE", "CMakeLists.txt", "include", "src", "ggml/CMakeLists.txt", "ggml/include", "ggml/src/*.h"];

/** Parts of the source tree, with the suffix of the folder that each is unpacked to. */
const PARTS = {
  headers: { suffix: "", paths: HEADERS },
  vision: {
    suffix: "-vision",
    paths: [...HEADERS, "tools/mtmd/*.h", "tools/mtmd/*.cpp", "tools/mtmd/models", "tools/mtmd/debug", "vendor/stb"],
  },
  metal: { suffix: "-metal", paths: [...HEADERS, ...["m", "h", "cpp"].map((end) => `ggml/src/ggml-metal/*.${end}`)] },
  all: { suffix: "-source", paths: ["."] },
};

/** The llama.cpp source tree of the pinned release, or a part of it, unpacked once to native/.llama/<version>. */
export function unpackLlamaSource(part) {
  const packed = join(nativeRoot, "llama");
  if (part === "headers" && existsSync(join(packed, "include", "llama.h"))) return packed;
  const { suffix, paths } = PARTS[part];
  const target = join(nativeRoot, ".llama", `${readLlamaPin()}${suffix}`);
  if (existsSync(join(target, "include", "llama.h"))) return target;
  const root = findNodeLlamaCpp();
  const temporary = `${target}.${process.pid}.tmp`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(dirname(target), { recursive: true });
  const git = (...args) => execFileSync("git", args, { stdio: ["ignore", "ignore", "pipe"] });
  try {
    git("clone", "--quiet", "--no-checkout", join(root, "llama", "gitRelease.bundle"), temporary);
    git("-C", temporary, "checkout", "--quiet", "HEAD", "--", ...paths);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw new BuildError(`could not unpack the llama.cpp source with git: ${error.message}\nIs git installed?`);
  }
  if (part !== "all") rmSync(join(temporary, ".git"), { recursive: true, force: true });
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

/** Path of a library in `bins` whatever its name has besides (libllama.so, libllama.v0.5.0.so, llama.dll). */
export function findLibrary(bins, name) {
  const pattern = new RegExp(`^(lib)?${name}(\\.v[\\d.]+)?\\.(so|dylib|dll)$`);
  const file = readdirSync(bins).find((entry) => pattern.test(entry));
  if (!file) throw new BuildError(`no library "${name}" in ${bins}`);
  return join(bins, file);
}
