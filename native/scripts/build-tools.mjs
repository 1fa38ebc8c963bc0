// Build requirements that no package provides: CMake, a C++ compiler, make or ninja.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { nativeRoot } from "./llama-paths.mjs";
import { describeTarget, thisTarget } from "./targets.mjs";

const isWindows = process.platform === "win32";
const OLDEST_CMAKE = [3, 15];

/** The output of `program --version`; null when it cannot be run. */
function readVersion(program) {
  const { status, stdout } = spawnSync(program, ["--version"], { encoding: "utf8" });
  return status === 0 ? stdout : null;
}

/** Descriptions of the missing tools; empty when a build can start. */
export function listMissingTools() {
  const missing = [];
  const cmake = readVersion("cmake");
  const [major, minor] = (/(\d+)\.(\d+)/.exec(cmake ?? "")?.slice(1) ?? []).map(Number);
  if (cmake === null) missing.push("CMake");
  else if (major < OLDEST_CMAKE[0] || (major === OLDEST_CMAKE[0] && minor < OLDEST_CMAKE[1]))
    missing.push(`a newer CMake than ${major}.${minor}`);
  const compilers = process.env.CXX ? [process.env.CXX] : isWindows ? ["g++"] : ["c++", "g++", "clang++"];
  if (!compilers.some(readVersion)) missing.push(`a C++17 compiler (looked for ${compilers.join(", ")})`);
  if (!["ninja", ...makes].some(readVersion)) missing.push(`${makes.join(", ")} or ninja`);
  return missing;
}

const makes = isWindows ? ["mingw32-make"] : ["make"];

/** CMake's arguments for the program that runs the compilers. */
export function findGenerator() {
  if (readVersion("ninja") !== null) return ["-G", "Ninja"];
  return isWindows ? ["-G", "MinGW Makefiles"] : ["-G", "Unix Makefiles"];
}

/** CMake's arguments for its settings. It wants the same slashes in paths everywhere. */
export const writeDefinitions = (settings) =>
  Object.entries(settings).map(([key, value]) => `-D${key}=${isWindows ? value.replaceAll("\\", "/") : value}`);

/**
 * Settings of GCC for Windows. Its own libraries are linked in: no user has them. A library that exported them would hand
 * them to those that are linked with it, which have their own. Windows aligns the stack to 16 bytes
 * only, and GCC does not (its bug 54412): the assembler writes moves of wider registers that need no alignment.
 */
const mingwArguments = ["-Wa,-muse-unaligned-vector-move", "-include", join(nativeRoot, "include", "mingw.h")];
const mingwCompiler = mingwArguments.map((argument) => `"${argument}"`).join(" ");
const mingwLinker = "-static -Wl,--exclude-libs,ALL";
const MINGW = {
  arguments: mingwArguments,
  flags: {
    CMAKE_C_FLAGS: mingwCompiler,
    CMAKE_CXX_FLAGS: mingwCompiler,
    CMAKE_SHARED_LINKER_FLAGS: mingwLinker,
    CMAKE_MODULE_LINKER_FLAGS: mingwLinker,
  },
};
const UNIX = { arguments: [], flags: {} };

/**
 * `{ compiler, prefix, defines, flags, arguments }` of this machine: compiler "" is the one that CMake finds, `flags` are
 * its settings, `arguments` what they add to a call of the compiler.
 */
function findNativeCompilers() {
  const compiler = process.env.CXX ?? (isWindows ? "g++" : "");
  const defines = compiler ? { CMAKE_CXX_COMPILER: compiler } : {};
  return isWindows
    ? { compiler, prefix: "", defines: { ...defines, CMAKE_C_COMPILER: process.env.CC ?? "gcc" }, ...MINGW }
    : { compiler, prefix: "", defines, ...UNIX };
}

/** Targets that an addon can be cross-compiled for on Linux, with their compilers and CMake settings. */
const CROSS_COMPILERS = {
  "linux-arm64": {
    prefix: "aarch64-linux-gnu-",
    suffix: "",
    system: { CMAKE_SYSTEM_NAME: "Linux", CMAKE_SYSTEM_PROCESSOR: "aarch64" },
    ...UNIX,
    debian: "g++-aarch64-linux-gnu",
  },
  "win32-x64": {
    prefix: "x86_64-w64-mingw32-",
    // With the threads of C++.
    suffix: "-posix",
    system: {
      CMAKE_SYSTEM_NAME: "Windows",
      CMAKE_SYSTEM_PROCESSOR: "AMD64",
      CMAKE_RC_COMPILER: "x86_64-w64-mingw32-windres",
    },
    ...MINGW,
    debian: "g++-mingw-w64-x86-64-posix",
  },
};

/** The same of a compiler for another target; its other tools' names begin with `prefix`. @throws Error that names the packages to install. */
export function findCrossCompiler(target) {
  const known = process.platform === "linux" ? CROSS_COMPILERS[target] : undefined;
  if (!known) throw new Error(`no addon for ${describeTarget(target).name} can be built on ${thisTarget}`);
  const { prefix, suffix, system, debian, ...settings } = known;
  const compiler = `${prefix}g++${suffix}`;
  if (readVersion(compiler) === null)
    throw new Error(`an addon for ${target} needs ${compiler} (Debian, Ubuntu: apt-get install ${debian})`);
  const defines = { ...system, CMAKE_CXX_COMPILER: compiler, CMAKE_C_COMPILER: `${prefix}gcc${suffix}` };
  return { compiler, prefix, defines, ...settings };
}

/** The compiler for a target, on this machine. @throws Error that names the packages to install. */
export const findCompiler = (target) => (target === thisTarget ? findNativeCompilers() : findCrossCompiler(target));

export const howToInstallTools = `    Debian, Ubuntu   apt-get install g++ make cmake
    Fedora           dnf install gcc-c++ make cmake
    macOS            xcode-select --install && brew install cmake
    Windows          MinGW-w64's GCC, CMake and Ninja in the PATH; or WSL 2 (wsl --install), and in it as on Ubuntu`;
