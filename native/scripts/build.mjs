// Builds the addon into native/build/Release/cria.node, unless a stamp says that nothing changed since.
// CRIA_BUILD_LLAMA=source compiles llama.cpp from the bundle first instead of using the prebuilt libraries.
// CRIA_SANITIZE=address,undefined builds build-address-undefined/Release/cria.node, CRIA_SANITIZE=thread the program
// build-thread/Release/engine_races.
// CXX names another compiler than CMake finds.
// --prebuild builds native/.cache/prebuild-x64/Release/cria.node, which finds llama.cpp wherever it is installed;
// --prebuild --arch arm64 that of another processor, with its cross compiler.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { buildKernels } from "./build-kernels.mjs";
import { findCrossCompiler } from "./build-tools.mjs";
import {
  BuildError,
  findLibrary,
  findPrebuiltBins,
  namePrebuiltBins,
  nativeRoot,
  readHeaderVersions,
  readLlamaPin,
  unpackLlamaSource,
} from "./llama-paths.mjs";

const require = createRequire(import.meta.url);
const fromSource = process.env.CRIA_BUILD_LLAMA === "source";
const sanitize = process.env.CRIA_SANITIZE ?? "";
const { prebuild, arch } = parseArgs({
  options: { prebuild: { type: "boolean", default: false }, arch: { type: "string", default: process.arch } },
}).values;
const cross = arch === process.arch ? null : findCrossCompiler(arch);
const compiler = cross?.compiler ?? process.env.CXX ?? "";
const folder = prebuild
  ? join(".cache", `prebuild-${arch}`)
  : sanitize
    ? `build-${sanitize.replaceAll(",", "-")}`
    : "build";
const buildDir = join(nativeRoot, folder);
const stampFile = join(buildDir, "stamp.json");
const addonFile = join(buildDir, "Release", sanitize === "thread" ? "engine_races" : "cria.node");

function hashInputs() {
  const hash = createHash("sha256");
  const addFolder = (dir) => {
    for (const entry of readdirSync(dir, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(dir, entry.name);
      if (entry.isDirectory()) addFolder(path);
      else hash.update(path.slice(nativeRoot.length)).update(readFileSync(path));
    }
  };
  for (const dir of ["src", "include", "scripts", ...(sanitize === "thread" ? ["test"] : [])])
    addFolder(join(nativeRoot, dir));
  for (const file of ["CMakeLists.txt", "package.json", "kernels/cria_kernels.h", "vision/cria_vision.h"])
    hash.update(readFileSync(join(nativeRoot, file)));
  hash.update(
    [readLlamaPin(), process.platform, arch, fromSource, sanitize, prebuild, ...(compiler ? [compiler] : [])].join("|"),
  );
  return hash.digest("hex");
}

function buildLlamaFromSource() {
  const source = unpackLlamaSource("all");
  const out = join(source, "build-cria");
  const run = (...args) => {
    try {
      execFileSync("cmake", args, { stdio: "inherit" });
    } catch {
      throw new BuildError("llama.cpp did not compile (above). It needs a C++17 compiler and CMake 3.15 or newer.");
    }
  };
  run(
    "-S",
    source,
    "-B",
    out,
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=ON",
    // The libraries find each other after their folder was moved.
    "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON",
    "-DGGML_NATIVE=ON",
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_BUILD_COMMON=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_TOOLS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_SERVER=OFF",
  );
  // Only the libraries: programs need generated files that the bundle does not have.
  const targets = ["--target", "llama", "--target", "ggml"];
  run("--build", out, "--config", "Release", ...targets, "--parallel", String(availableParallelism()));
  return { source, bins: join(out, "bin") };
}

/**
 * Settings of an addon that is not bound to this machine's folders. Its package depends on the package of llama.cpp's
 * libraries, which a package manager installs inside it (npm, on a conflict of versions), next to it (npm, pnpm), or
 * further up.
 */
function relocate() {
  if (fromSource || sanitize || process.platform !== "linux")
    throw new BuildError("a prebuild is made on Linux, with the prebuilt libraries and without sanitizers");
  const bins = join("@node-llama-cpp", namePrebuiltBins(arch), "bins", namePrebuiltBins(arch));
  const bases = ["node_modules", "../..", "../../../..", "../../../../.."];
  return {
    LLAMA_BINS: bins,
    CMAKE_BUILD_WITH_INSTALL_RPATH: "ON",
    CMAKE_INSTALL_RPATH: bases.map((base) => `$ORIGIN/${base}/${bins}`).join(";"),
  };
}

/** cmake-js configures a build folder once: changed libraries or headers need a new one. */
function forgetOldConfiguration(defines) {
  const file = join(buildDir, "defines.json");
  const text = JSON.stringify(defines);
  if (!existsSync(file) || readFileSync(file, "utf8") !== text) {
    rmSync(buildDir, { recursive: true, force: true });
    mkdirSync(buildDir, { recursive: true });
    writeFileSync(file, text);
  }
}

function compileAddon({ source, bins }) {
  const versions = readHeaderVersions(source);
  const defines = {
    LLAMA_SOURCE: source,
    LLAMA_BINS: bins,
    LLAMA_LIBRARY: findLibrary(bins, "llama"),
    GGML_LIBRARY: findLibrary(bins, "ggml"),
    GGML_BASE_LIBRARY: findLibrary(bins, "ggml-base"),
    LLAMA_RELEASE: versions.llama,
    GGML_RELEASE: versions.ggml,
    NODE_ADDON_API: dirname(require.resolve("node-addon-api/package.json")),
    CRIA_SANITIZE: sanitize,
    ...(compiler ? { CMAKE_CXX_COMPILER: compiler } : {}),
    ...cross?.defines,
    ...(prebuild ? relocate() : {}),
  };
  forgetOldConfiguration(defines);
  const cmakeJs = join(dirname(require.resolve("cmake-js/package.json")), "bin", "cmake-js");
  const args = [
    cmakeJs,
    "compile",
    "--directory",
    nativeRoot,
    "--out",
    buildDir,
    "--parallel",
    String(availableParallelism()),
  ];
  for (const [key, value] of Object.entries(defines)) args.push(`--CD${key}=${value}`);
  try {
    execFileSync(process.execPath, args, { stdio: ["ignore", process.env.CRIA_VERBOSE ? "inherit" : "pipe", "pipe"] });
  } catch (error) {
    process.stderr.write(`${error.stdout ?? ""}${error.stderr ?? ""}\n`);
    throw new BuildError(
      "the addon did not compile (above). It needs a C++17 compiler, CMake 3.15 or newer, and make or ninja.",
    );
  }
}

try {
  // The kernels compile in parallel with the addon.
  if (cross && !prebuild) throw new BuildError("--arch is for --prebuild");
  const kernels = sanitize || cross ? null : buildKernels();
  const stamp = hashInputs();
  const last = existsSync(stampFile) ? JSON.parse(readFileSync(stampFile, "utf8")) : null;
  if (last?.stamp === stamp && existsSync(addonFile) && existsSync(last.bins)) {
    console.log("native addon: up to date");
  } else {
    const started = Date.now();
    console.log(fromSource ? "native addon: building llama.cpp from source, then the addon" : "native addon: building");
    const llama = fromSource
      ? buildLlamaFromSource()
      : { source: unpackLlamaSource("headers"), bins: findPrebuiltBins(arch) };
    compileAddon(llama);
    writeFileSync(`${stampFile}.tmp`, JSON.stringify({ stamp, bins: llama.bins }));
    renameSync(`${stampFile}.tmp`, stampFile);
    console.log(`native addon: built in ${((Date.now() - started) / 1000).toFixed(1)} s`);
  }
  const { library, said } = (await kernels) ?? {};
  if (said) console.log(said);
  const beside = join(dirname(addonFile), "libcria-cuda.so");
  if (library) copyFileSync(library, beside);
  else rmSync(beside, { force: true });
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  console.error(`native addon: ${error.message}`);
  process.exit(1);
}
