// Build requirements that no package provides: CMake, a C++ compiler, make or ninja.
import { spawnSync } from "node:child_process";

const OLDEST_CMAKE = [3, 15];

/** The output of `program --version`; null when it cannot be run. */
function readVersion(program) {
  const { status, stdout } = spawnSync(program, ["--version"], { encoding: "utf8" });
  return status === 0 ? stdout : null;
}

/** Descriptions of the missing tools; empty when a build can start. */
export function listMissingTools() {
  if (process.platform === "win32") return ["a POSIX system: the sources are for GCC or Clang on Linux or macOS"];
  const missing = [];
  const cmake = readVersion("cmake");
  const [major, minor] = (/(\d+)\.(\d+)/.exec(cmake ?? "")?.slice(1) ?? []).map(Number);
  if (cmake === null) missing.push("CMake");
  else if (major < OLDEST_CMAKE[0] || (major === OLDEST_CMAKE[0] && minor < OLDEST_CMAKE[1]))
    missing.push(`a newer CMake than ${major}.${minor}`);
  const compilers = process.env.CXX ? [process.env.CXX] : ["c++", "g++", "clang++"];
  if (!compilers.some(readVersion)) missing.push(`a C++17 compiler (looked for ${compilers.join(", ")})`);
  if (!["make", "ninja"].some(readVersion)) missing.push("make or ninja");
  return missing;
}

/** Processors that an addon can be cross-compiled for on Linux, with their compilers and CMake settings. */
const CROSS_COMPILERS = {
  arm64: { compiler: "aarch64-linux-gnu-g++", processor: "aarch64", debian: "g++-aarch64-linux-gnu" },
};

/** `{ compiler, defines }` for a processor by its Node name. @throws Error that names the packages to install. */
export function findCrossCompiler(arch) {
  const known = process.platform === "linux" ? CROSS_COMPILERS[arch] : undefined;
  if (!known) throw new Error(`no addon for linux-${arch} can be built on ${process.platform}-${process.arch}`);
  const { compiler, processor, debian } = known;
  if (readVersion(compiler) === null)
    throw new Error(`an addon for linux-${arch} needs ${compiler} (Debian, Ubuntu: apt-get install ${debian})`);
  return { compiler, defines: { CMAKE_SYSTEM_NAME: "Linux", CMAKE_SYSTEM_PROCESSOR: processor } };
}

export const howToInstallTools = `    Debian, Ubuntu   apt-get install g++ make cmake
    Fedora           dnf install gcc-c++ make cmake
    macOS            xcode-select --install && brew install cmake
    Windows          WSL 2 (wsl --install), and in it as on Ubuntu`;
