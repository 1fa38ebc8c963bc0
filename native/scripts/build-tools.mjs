// What a build needs that no package brings: CMake, a C++ compiler, make or ninja.
import { spawnSync } from "node:child_process";

const OLDEST_CMAKE = [3, 15];

/** What `program --version` prints; null when it cannot be run. */
function readVersion(program) {
  const { status, stdout } = spawnSync(program, ["--version"], { encoding: "utf8" });
  return status === 0 ? stdout : null;
}

/** What is missing, in words; empty when a build can be tried. */
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

export const howToInstallTools = `    Debian, Ubuntu   apt-get install g++ make cmake
    Fedora           dnf install gcc-c++ make cmake
    macOS            xcode-select --install && brew install cmake
    Windows          WSL 2 (wsl --install), and in it as on Ubuntu`;
