// Loads the compiled addon. The typed contract of what it exports is packages/engine/src/native-types.ts.

const { existsSync } = require("node:fs");
const { join } = require("node:path");

/** The optional package that holds the ready-made addon of this platform. */
function namePrebuild() {
  return `@cria/native-${process.platform}-${process.arch}`;
}

/** Its file, or null where the package is not installed. */
function findPrebuild() {
  try {
    return require.resolve(`${namePrebuild()}/cria.node`);
  } catch {
    return null;
  }
}

/** Files tried, in order: CRIA_ADDON (for example a sanitizer build), the build made here, the ready-made one. */
function listCandidates() {
  const built = join(__dirname, "build", "Release", "cria.node");
  return [process.env.CRIA_ADDON, built, findPrebuild()].filter(Boolean);
}

/** The addon's exports; throws an Error that lists what was tried and how to get one. */
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
      `Install with optional packages, so that ${namePrebuild()} comes along, or build it (C++17 compiler, CMake) with\n` +
      `  node ${join(__dirname, "scripts", "build.mjs")}\n` +
      "which installing does by itself where install scripts are allowed (pnpm: pnpm approve-builds).",
  );
}

/** The optional package that holds libcria-vision.so for this platform. */
function nameVisionPackage() {
  return `@cria/vision-${process.platform}-${process.arch}`;
}

/** The library's file: that of CRIA_VISION, the one built here (scripts/build-vision.mjs), or the package's; null without one. */
function findVisionLibrary() {
  const name = "libcria-vision.so";
  if (process.env.CRIA_VISION) return process.env.CRIA_VISION;
  const built = join(__dirname, ".cache", `vision-${process.arch}`, name);
  if (existsSync(built)) return built;
  try {
    return require.resolve(`${nameVisionPackage()}/${name}`);
  } catch {
    return null;
  }
}

/** The program that tries a projector's file in a process of its own. */
const projectorTrial = join(__dirname, "scripts", "try-projector.cjs");

module.exports = { findVisionLibrary, listCandidates, loadAddon, namePrebuild, nameVisionPackage, projectorTrial };
