// Packs everything that is published into tarballs: the packages, `cria`, the addon's sources (@cria/native), and for each
// platform the ready-made addon (@cria/native-linux-x64) and the library for images (@cria/vision-linux-x64). Needs built
// packages: npm run bootstrap.
//
//   node scripts/pack.mjs [--out .cache/tarballs]               all, for the platforms that can be built here
//   node scripts/pack.mjs --target darwin-arm64 [--out ...]     the two packages of one platform alone
//   node scripts/pack.mjs --prebuilds <folder> [--out ...]      all: those of every platform are taken from a folder
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { compilesLlama, listLibraries } from "../native/scripts/build-llama.mjs";
import { findCrossCompiler } from "../native/scripts/build-tools.mjs";
import { nameVision, visionFolder } from "../native/scripts/build-vision.mjs";
import { findPrebuiltBins, namePrebuiltBins, readLlamaPin, unpackLlamaSource } from "../native/scripts/llama-paths.mjs";
import { describeTarget, targets, thisTarget } from "../native/scripts/targets.mjs";
import { npmProgram } from "./programs.mjs";
import { writePages } from "./publish-pages.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const native = join(root, "native");
const readManifest = (folder) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

/** Folders of the packages that `pnpm pack` packs: all that are not private. */
export const packages = readdirSync(join(root, "packages"))
  .map((name) => `packages/${name}`)
  .concat("apps/trainer")
  .filter((folder) => existsSync(join(root, folder, "package.json")) && !readManifest(join(root, folder)).private);

/**
 * Packs everything into `out`, which is emptied before; gives the tarballs' paths. `prebuilds`: a folder with the
 * tarballs of every platform; without it those of `platforms` are packed, by default all that can be built here.
 * @param {string} out @param {{ prebuilds?: string, platforms?: string[] }} options
 */
export function packAll(out, { prebuilds, platforms } = {}) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const names = prebuilds ? targets.map(({ name }) => name) : (platforms ?? listPrebuilds(console.error));
  const given = prebuilds ? takePrebuilds(prebuilds, out) : [];
  return inStaging((staging) => {
    const tarballs = packages.map((folder) => packWorkspacePackage(folder, join(staging, folder), out));
    tarballs.push(packNative(names, join(staging, "native"), out));
    return [...tarballs, ...(prebuilds ? given : names.flatMap((target) => packPlatform(target, staging, out)))];
  });
}

/** Packs the two packages of one platform into `out`, and keeps what else is there. */
export function packTarget(target, out) {
  mkdirSync(out, { recursive: true });
  return inStaging((staging) => packPlatform(target, staging, out));
}

function inStaging(pack) {
  const staging = mkdtempSync(join(tmpdir(), "cria-pack-"));
  try {
    return pack(staging);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

const packPlatform = (target, staging, out) => [
  packPrebuild(target, join(staging, target), out),
  packVision(target, join(staging, `vision-${target}`), out),
];

/** Copies the tarballs of every platform. @throws Error that names the missing ones. */
export function takePrebuilds(folder, out) {
  const { version } = readManifest(native);
  const files = targets.flatMap(({ name }) => [
    `cria-native-${name}-${version}.tgz`,
    `cria-vision-${name}-${version}.tgz`,
  ]);
  const missing = files.filter((file) => !existsSync(join(folder, file)));
  if (missing.length > 0) throw new Error(`${folder} lacks ${missing.join(", ")}: prebuilds.yml makes them`);
  return files.map((file) => {
    copyFileSync(join(folder, file), join(out, file));
    return resolve(out, file);
  });
}

/**
 * The platforms that a ready-made addon is packed for unless others are asked for: this one, and on x64 Linux arm64
 * where it can be compiled. (A platform for which llama.cpp must be compiled too takes many minutes.) `warn` gets a text
 * about each one left out.
 * @param {(text: string) => void} warn
 */
export function listPrebuilds(warn) {
  const list = [thisTarget];
  if (thisTarget !== "linux-x64") return list;
  for (const { name } of targets.filter((target) => target.name !== thisTarget && !target.ownLibraries)) {
    try {
      findCrossCompiler(name);
      findPrebuiltBins(name);
      list.push(name);
    } catch (error) {
      warn(`${namePrebuild(name)} is not packed: ${error.message}`);
    }
  }
  return list;
}

/** Packs a workspace package with pnpm, with pages that fit a tarball. */
function packWorkspacePackage(folder, staging, out) {
  const path = join(root, folder);
  const { main } = readManifest(path);
  if (main && !existsSync(join(path, main))) throw new Error(`${folder}/${main} is not there; run: npm run bootstrap`);
  const { packageManager } = readManifest(root);
  mkdirSync(staging, { recursive: true });
  const pnpm = ["--yes", packageManager, "pack", "--json", "--pack-destination", staging];
  const [npx, ...args] = npmProgram("npx", ...pnpm);
  const { filename } = JSON.parse(
    execFileSync(npx, args, { cwd: path, encoding: "utf8", stdio: ["ignore", "pipe", 2] }),
  );
  execFileSync("tar", ["-xzf", basename(filename)], { cwd: staging });
  const unpacked = join(staging, "package");
  writePages(folder, unpacked);
  return packStaged(unpacked, out, readManifest(unpacked));
}

/**
 * The addon's loader and sources, with the headers of llama.cpp that they compile against: a build at install needs
 * neither git nor node-llama-cpp. The install script, the ready-made addon and the library for images stand in the
 * packed manifest only; in this repository the one would run at every `pnpm install`, and the others do not exist.
 */
function packNative(names, staging, out) {
  const { devDependencies, ...manifest } = readManifest(native);
  for (const name of [
    "index.mjs",
    "index.cjs",
    "index.d.mts",
    "index.d.cts",
    "README.md",
    "CMakeLists.txt",
    "src",
    "include",
    "kernels",
    "vision",
    "scripts",
  ])
    cpSync(join(native, name), join(staging, name), { recursive: true });
  const headers = unpackLlamaSource("headers");
  cpSync(headers, join(staging, "llama"), { recursive: true, filter: (path) => !/\.(c|cpp)$/.test(path) });
  return packStaged(staging, out, {
    ...manifest,
    scripts: { install: "node scripts/install.mjs" },
    optionalDependencies: {
      ...listPlatformPackages(names, manifest.version),
      ...manifest.optionalDependencies,
    },
  });
}

/** The optional dependencies of @cria/native that have its ready-made parts. */
export function listPlatformPackages(names, version) {
  return Object.fromEntries(
    names.flatMap((target) => [
      [namePrebuild(target), version],
      [nameVisionPackage(target), version],
    ]),
  );
}

/** The addon itself, for one platform; built from nothing, as CMake keeps settings of an earlier build. */
export function packPrebuild(target, staging, out) {
  const folder = join(native, ".cache", `prebuild-${target}`);
  rmSync(folder, { recursive: true, force: true });
  const args = [join(native, "scripts", "build.mjs"), "--prebuild", "--target", target];
  execFileSync(process.execPath, args, { stdio: ["ignore", 2, 2] });
  mkdirSync(staging, { recursive: true });
  const built = join(folder, "Release");
  const own = compilesLlama(target) ? listLibraries(built).map((path) => basename(path)) : [];
  // The CUDA kernels come along where nvcc compiled them.
  const files = ["cria.node", "libcria-cuda.so", ...own].filter((name) => existsSync(join(built, name)));
  for (const name of files) cpSync(join(built, name), join(staging, name));
  if (own.length > 0) files.push(copyLicense(staging));
  writeFileSync(join(staging, "README.md"), describeInReadme(target));
  return packStaged(staging, out, { ...describePrebuild(target), files });
}

/**
 * The library for images, for one platform. It runs on the libraries that the addon has loaded, so that it depends on
 * nothing.
 */
export function packVision(target, staging, out) {
  execFileSync(process.execPath, [join(native, "scripts", "build-vision.mjs"), "--target", target], {
    stdio: ["ignore", 2, 2],
  });
  mkdirSync(staging, { recursive: true });
  const library = nameVision(target);
  cpSync(join(visionFolder(target), library), join(staging, library));
  writeFileSync(join(staging, "README.md"), describeVisionInReadme(target));
  return packStaged(staging, out, { ...describeVision(target), files: [library, copyLicense(staging)] });
}

/** That of llama.cpp, whose code a package has. */
function copyLicense(staging) {
  cpSync(join(unpackLlamaSource("vision"), "LICENSE"), join(staging, "LICENSE-llama.cpp"));
  return "LICENSE-llama.cpp";
}

/** The manifest of the ready-made addon's package: package managers install it only on such machines. */
export function describePrebuild(target) {
  const libraries = { [`@node-llama-cpp/${namePrebuiltBins(target)}`]: readLlamaPin() };
  return {
    ...describePlatformPackage(target, namePrebuild(target), "The native addon of @cria/engine, ready-made"),
    main: "cria.node",
    ...(describeTarget(target).ownLibraries ? {} : { dependencies: libraries }),
  };
}

/** The same of the library for images. */
export function describeVision(target) {
  const description = "The library of @cria/engine that lets models see images";
  return { ...describePlatformPackage(target, nameVisionPackage(target), description), main: nameVision(target) };
}

function describePlatformPackage(target, name, description) {
  const { version, license, engines, publishConfig } = readManifest(native);
  const { platform, arch } = describeTarget(target);
  return {
    name,
    version,
    description: `${description} for ${target}.`,
    license,
    os: [platform],
    cpu: [arch],
    ...(platform === "linux" ? { libc: ["glibc"] } : {}),
    preferUnplugged: true,
    engines,
    publishConfig,
  };
}

function describeVisionInReadme(target) {
  return `# ${nameVisionPackage(target)}

The library of [@cria/engine](https://www.npmjs.com/package/@cria/engine) that opens projectors and pictures, so that models see images,
for ${target}: llama.cpp's mtmd and stb_image. It comes with \`@cria/native\` on such machines; there is nothing to install or
import by hand.
`;
}

function describeInReadme(target) {
  const libraries = describeTarget(target).ownLibraries ? " with llama.cpp's libraries," : "";
  return `# ${namePrebuild(target)}

The native addon of [@cria/engine](https://www.npmjs.com/package/@cria/engine),${libraries} ready-made for ${target}. It comes with
\`@cria/native\` on such machines; there is nothing to install or import by hand.
`;
}

const namePrebuild = (target) => `@cria/native-${target}`;
const nameVisionPackage = (target) => `@cria/vision-${target}`;

function packStaged(staging, out, manifest) {
  writeFileSync(join(staging, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  cpSync(join(root, "LICENSE"), join(staging, "LICENSE"));
  const [npm, ...args] = npmProgram("npm", "pack", "--json", "--pack-destination", resolve(out));
  const [{ filename }] = JSON.parse(
    execFileSync(npm, args, { cwd: staging, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }),
  );
  return resolve(out, filename.replace("@", "").replace("/", "-"));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = parseArgs({
    options: {
      out: { type: "string", default: join(root, ".cache", "tarballs") },
      target: { type: "string" },
      prebuilds: { type: "string" },
    },
  });
  const { target, prebuilds } = values;
  const out = resolve(values.out);
  for (const file of target ? packTarget(target, out) : packAll(out, { prebuilds })) console.log(file);
}
