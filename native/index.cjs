// Loads the compiled addon. packages/engine/src/native-types.ts has the typed contract of its exports.

const { existsSync } = require("node:fs");
const { join } = require("node:path");

/** Name of the optional package with the prebuilt addon of this platform. */
function namePrebuild() {
  return `@cria/native-${process.platform}-${process.arch}`;
}

/** The package's addon file, or null when the package is not installed. */
function findPrebuild() {
  try {
    return require.resolve(`${namePrebuild()}/cria.node`);
  } catch {
    return null;
  }
}

/** Files tried, in order: CRIA_ADDON (for example a sanitizer build), the local build, the prebuilt addon. */
function listCandidates() {
  const built = join(__dirname, "build", "Release", "cria.node");
  return [process.env.CRIA_ADDON, built, findPrebuild()].filter(Boolean);
}

/** The addon's exports. Throws an Error that lists the files tried and how to get one. */
function loadAddon() {
  const tried = [];
  for (const file of listCandidates()) {
    if (!existsSync(file)) {
      tried.push(`${file}: not there`);
      continue;
    }
    try {
      return require(file);
    } catch (error) {
      tried.push(`${file}: ${error.message}`);
    }
  }
  if (findPrebuild() === null) tried.push(`${namePrebuild()}: not installed`);
  throw new Error(
    `the native addon could not be loaded; tried\n  ${tried.join("\n  ")}\n` +
      `Install with optional packages, so that ${namePrebuild()} is included, or build it (C++17 compiler, CMake) with\n` +
      `  node ${join(__dirname, "scripts", "build.mjs")}\n` +
      "which the installation does if install scripts are allowed (pnpm: pnpm approve-builds).",
  );
}

/** Name of the optional package with the library for images of this platform. */
function nameVisionPackage() {
  return `@cria/vision-${process.platform}-${process.arch}`;
}

/** File of the library for images, by Node's name of a platform. */
function nameVisionLibrary(platform = process.platform) {
  const names = { win32: "cria-vision.dll", darwin: "libcria-vision.dylib" };
  return names[platform] ?? "libcria-vision.so";
}

/**
 * Path of the library: CRIA_VISION, the local build (scripts/build-vision.mjs), or the package's; null when there is
 * none.
 */
function findVisionLibrary() {
  const name = nameVisionLibrary();
  if (process.env.CRIA_VISION) return process.env.CRIA_VISION;
  const built = join(__dirname, ".cache", `vision-${process.arch}`, name);
  if (existsSync(built)) return built;
  try {
    return require.resolve(`${nameVisionPackage()}/${name}`);
  } catch {
    return null;
  }
}

/** The program that tries a projector's file in a child process. */
const projectorTrial = join(__dirname, "scripts", "try-projector.cjs");

module.exports = {
  findVisionLibrary,
  listCandidates,
  loadAddon,
  namePrebuild,
  nameVisionLibrary,
  nameVisionPackage,
  projectorTrial,
};
