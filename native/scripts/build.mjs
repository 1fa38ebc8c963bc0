// Builds the addon into native/build/Release/cria.node, unless a stamp says that nothing changed since.
// CRIA_BUILD_LLAMA=source compiles llama.cpp from the bundle first instead of using the prebuilt libraries, as is done
// where there are none (macOS, Windows).
// CRIA_SANITIZE=address,undefined builds build-address-undefined/Release/cria.node, CRIA_SANITIZE=thread the program
// build-thread/Release/engine_races.
// CXX names another compiler than CMake finds.
// --prebuild builds native/.cache/prebuild-linux-x64/Release/cria.node, which finds llama.cpp wherever it is installed, or
// in its own folder; --prebuild --target linux-arm64 that of another platform, with its cross compiler.
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
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { buildKernels } from "./build-kernels.mjs";
import { buildLlama, compilesLlama, listLibraries } from "./build-llama.mjs";
import { findCompiler, findGenerator, writeDefinitions } from "./build-tools.mjs";
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
import { describeTarget, thisTarget } from "./targets.mjs";

const require = createRequire(import.meta.url);
const sanitize = process.env.CRIA_SANITIZE ?? "";
const { prebuild, target } = parseArgs({
  options: { prebuild: { type: "boolean", default: false }, target: { type: "string", default: thisTarget } },
}).values;
const { platform } = describeTarget(target);
const fromSource = compilesLlama(target);
const compilers = findCompiler(target);
const folder = prebuild
  ? join(".cache", `prebuild-${target}`)
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
  const { compiler, flags } = compilers;
  const settings = [readLlamaPin(), target, fromSource, sanitize, prebuild, ...(compiler ? [compiler] : [])];
  hash.update([...settings, ...Object.values(flags)].join("|"));
  return hash.digest("hex");
}

/**
 * Settings of an addon that is not bound to this machine's folders. It finds its own libraries beside it. Else its
 * package depends on the package of llama.cpp's, which a package manager installs inside it (npm, on a conflict of
 * versions), next to it (npm, pnpm), or further up.
 */
function relocate(bins) {
  if (sanitize) throw new BuildError("a prebuild is made without sanitizers");
  if (fromSource) {
    if (platform === "linux") throw new BuildError("a prebuild for Linux is made with the prebuilt libraries");
    return { LLAMA_BINS: bins, CMAKE_BUILD_WITH_INSTALL_RPATH: "ON", CMAKE_INSTALL_RPATH: "@loader_path" };
  }
  const path = join("@node-llama-cpp", namePrebuiltBins(target), "bins", namePrebuiltBins(target));
  const bases = ["node_modules", "../..", "../../../..", "../../../../.."];
  return {
    LLAMA_BINS: path,
    CMAKE_BUILD_WITH_INSTALL_RPATH: "ON",
    CMAKE_INSTALL_RPATH: bases.map((base) => `$ORIGIN/${base}/${path}`).join(";"),
  };
}

/** A build folder is configured once: changed libraries or headers need a new one. */
function forgetOldConfiguration(defines) {
  const file = join(buildDir, "defines.json");
  const text = JSON.stringify(defines);
  if (!existsSync(file) || readFileSync(file, "utf8") !== text) {
    rmSync(buildDir, { recursive: true, force: true });
    mkdirSync(buildDir, { recursive: true });
    writeFileSync(file, text);
  }
}

/** CMake's settings about Node. On Windows an addon is linked with functions of node.exe, which it names. */
function listNodeSettings() {
  /** @type {{ include_dir: string, def_paths: { node_api_def: string } }} */
  const headers = require("node-api-headers");
  return {
    NODE_API: headers.include_dir,
    NODE_ADDON_API: dirname(require.resolve("node-addon-api/package.json")),
    ...(platform === "win32"
      ? { NODE_API_DEFINITIONS: headers.def_paths.node_api_def, DLLTOOL: `${compilers.prefix}dlltool` }
      : {}),
  };
}

function compileAddon({ source, bins }) {
  const versions = readHeaderVersions(source);
  const defines = {
    CMAKE_BUILD_TYPE: "Release",
    LLAMA_SOURCE: source,
    LLAMA_BINS: bins,
    LLAMA_LIBRARY: findLibrary(bins, "llama"),
    GGML_LIBRARY: findLibrary(bins, "ggml"),
    GGML_BASE_LIBRARY: findLibrary(bins, "ggml-base"),
    LLAMA_RELEASE: versions.llama,
    GGML_RELEASE: versions.ggml,
    CRIA_SANITIZE: sanitize,
    ...listNodeSettings(),
    ...compilers.defines,
    ...compilers.flags,
    ...(prebuild ? relocate(bins) : {}),
  };
  forgetOldConfiguration(defines);
  /** @type {import("node:child_process").ExecFileSyncOptions} */
  const options = { stdio: ["ignore", process.env.CRIA_VERBOSE ? "inherit" : "pipe", "pipe"], maxBuffer: 1 << 28 };
  const cmake = (...args) => execFileSync("cmake", args, options);
  try {
    const given = [...findGenerator(), ...writeDefinitions(defines)];
    cmake("-S", nativeRoot, "-B", buildDir, "--no-warn-unused-cli", ...given);
    cmake("--build", buildDir, "--config", "Release", "--parallel", String(availableParallelism()));
  } catch (error) {
    process.stderr.write(`${error.stdout ?? ""}${error.stderr ?? ""}\n`);
    throw new BuildError(
      "the addon did not compile (above). It needs a C++17 compiler, CMake 3.15 or newer, and make or ninja.",
    );
  }
}

/** Windows looks for the libraries in the addon's own folder, as an addon that is moved alone does elsewhere. */
function bringLibraries(bins) {
  if (platform !== "win32" && !(prebuild && fromSource)) return;
  for (const file of listLibraries(bins)) copyFileSync(file, join(dirname(addonFile), basename(file)));
}

try {
  // The kernels compile in parallel with the addon.
  if (target !== thisTarget && !prebuild) throw new BuildError("--target is for --prebuild");
  const kernels = sanitize || target !== thisTarget || platform !== "linux" ? null : buildKernels();
  const stamp = hashInputs();
  const last = existsSync(stampFile) ? JSON.parse(readFileSync(stampFile, "utf8")) : null;
  if (last?.stamp === stamp && existsSync(addonFile) && existsSync(last.bins)) {
    console.log("native addon: up to date");
  } else {
    const started = Date.now();
    console.log("native addon: building");
    const llama = fromSource
      ? buildLlama(target)
      : { source: unpackLlamaSource("headers"), bins: findPrebuiltBins(target) };
    compileAddon(llama);
    bringLibraries(llama.bins);
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
