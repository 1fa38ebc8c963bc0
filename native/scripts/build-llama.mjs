// Builds llama.cpp's libraries from the sources of the pinned release, once for each target: where no package has them
// (macOS, Windows), and where CRIA_BUILD_LLAMA=source asks for it.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { findCompiler, findGenerator, writeDefinitions } from "./build-tools.mjs";
import { BuildError, findPrebuiltBins, hasPrebuiltBins, unpackLlamaSource } from "./llama-paths.mjs";
import { describeTarget, thisTarget } from "./targets.mjs";

/** Whether the libraries of a target are compiled here. */
export function compilesLlama(target = thisTarget) {
  return process.env.CRIA_BUILD_LLAMA === "source" || !hasPrebuiltBins(target);
}

/** CMake's settings of the libraries. They run on every processor of the target, but for Linux: there only on this one. */
function listSettings(target) {
  const { platform } = describeTarget(target);
  const origin = platform === "darwin" ? "@loader_path" : "$ORIGIN";
  return {
    CMAKE_BUILD_TYPE: "Release",
    BUILD_SHARED_LIBS: "ON",
    // The libraries find each other after their folder was moved, and have no links beside them, which npm does not pack.
    CMAKE_BUILD_WITH_INSTALL_RPATH: "ON",
    CMAKE_INSTALL_RPATH: origin,
    CMAKE_PLATFORM_NO_VERSIONED_SONAME: "ON",
    GGML_NATIVE: platform === "linux" ? "ON" : "OFF",
    LLAMA_CURL: "OFF",
    LLAMA_BUILD_COMMON: "OFF",
    LLAMA_BUILD_TESTS: "OFF",
    LLAMA_BUILD_TOOLS: "OFF",
    LLAMA_BUILD_EXAMPLES: "OFF",
    LLAMA_BUILD_SERVER: "OFF",
    LLAMA_BUILD_APP: "OFF",
    ...(platform === "linux" ? {} : { GGML_OPENMP: "OFF" }),
    // Apple's BLAS would compute products of prompts with other bits than those of single tokens.
    ...(platform === "darwin"
      ? {
          GGML_METAL: "ON",
          GGML_METAL_EMBED_LIBRARY: "ON",
          GGML_BLAS: "OFF",
          GGML_ACCELERATE: "OFF",
          CMAKE_OSX_DEPLOYMENT_TARGET: "13.3",
        }
      : {}),
    ...(platform === "win32" ? { GGML_BACKEND_DL: "ON", GGML_CPU_ALL_VARIANTS: "ON" } : {}),
  };
}

/** The folder with the libraries of a target, and the sources that they were compiled from. Compiles them once. */
export function buildLlama(target = thisTarget) {
  const source = unpackLlamaSource("all");
  const out = join(source, `build-${target}`);
  const bins = join(out, "bin");
  const { defines, flags } = findCompiler(target);
  const settings = { ...listSettings(target), ...defines, ...flags };
  const stamp = JSON.stringify(settings);
  const stampFile = join(out, "cria-settings.json");
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return { source, bins };
  console.log(`llama.cpp for ${target}: building (once, some minutes)`);
  const run = (...args) => {
    try {
      execFileSync("cmake", args, { stdio: "inherit" });
    } catch {
      throw new BuildError("llama.cpp did not compile (above). It needs a C++17 compiler and CMake 3.15 or newer.");
    }
  };
  run("-S", source, "-B", out, ...findGenerator(), ...writeDefinitions(settings));
  // Only the libraries: programs need generated files that the bundle does not have.
  const wanted = ["--target", "llama", "--target", "ggml"];
  run("--build", out, "--config", "Release", ...wanted, "--parallel", String(availableParallelism()));
  writeFileSync(stampFile, stamp);
  return { source, bins };
}

/** The folder with the libraries of a target: a package's, or those that are compiled here. */
export function findBins(target = thisTarget) {
  return compilesLlama(target) ? buildLlama(target).bins : findPrebuiltBins(target);
}

/** The libraries' files, which an addon that has its own brings along. */
export function listLibraries(bins) {
  return readdirSync(bins)
    .filter((name) => /^(lib)?(llama|ggml)(-[\w-]+)?\.(so|dylib|dll)$/.test(name) && !/llama-common/.test(name))
    .map((name) => join(bins, name));
}
