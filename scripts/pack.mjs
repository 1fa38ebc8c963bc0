// Packs everything that is published into tarballs: the packages, `cria`, the addon's sources (@cria/native), the
// ready-made addons (@cria/native-linux-x64, and @cria/native-linux-arm64 where its cross compiler is) and the library
// for images of each (@cria/vision-linux-x64). Needs built packages: npm run bootstrap.
//
//   node scripts/pack.mjs [--out .cache/tarballs]
//   for file in .cache/tarballs/*.tgz; do npm publish "$file"; done
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { findCrossCompiler } from "../native/scripts/build-tools.mjs";
import { visionFolder, visionLibrary } from "../native/scripts/build-vision.mjs";
import { findPrebuiltBins, readLlamaPin, unpackLlamaSource } from "../native/scripts/llama-paths.mjs";
import { writePages } from "./publish-pages.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const native = join(root, "native");
const readManifest = (folder) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

/** Folders of the packages that `pnpm pack` packs: all that are not private. */
export const packages = readdirSync(join(root, "packages"))
  .map((name) => `packages/${name}`)
  .concat("apps/trainer")
  .filter((folder) => existsSync(join(root, folder, "package.json")) && !readManifest(join(root, folder)).private);

/** Packs everything into `out`, which is emptied before; gives the tarballs' paths. */
export function packAll(out) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const staging = mkdtempSync(join(tmpdir(), "cria-pack-"));
  try {
    const tarballs = packages.map((folder) => packWorkspacePackage(folder, join(staging, folder), out));
    tarballs.push(packNative(join(staging, "native"), out));
    for (const arch of listPrebuilds(console.error)) {
      tarballs.push(packPrebuild(arch, join(staging, arch), out));
      tarballs.push(packVision(arch, join(staging, `vision-${arch}`), out));
    }
    return tarballs;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/**
 * The processors that a ready-made addon is packed for: this one, and on Linux arm64 where it can be compiled. `warn`
 * gets a text about each one left out.
 */
export function listPrebuilds(warn) {
  const list = [process.arch];
  if (process.platform !== "linux" || process.arch === "arm64") return list;
  try {
    findCrossCompiler("arm64");
    findPrebuiltBins("arm64");
    list.push("arm64");
  } catch (error) {
    warn(`@cria/native-linux-arm64 is not packed: ${error.message}`);
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
  const args = ["--yes", packageManager, "pack", "--json", "--pack-destination", staging];
  const { filename } = JSON.parse(
    execFileSync("npx", args, { cwd: path, encoding: "utf8", stdio: ["ignore", "pipe", 2] }),
  );
  execFileSync("tar", ["-xzf", resolve(staging, filename)], { cwd: staging });
  const unpacked = join(staging, "package");
  writePages(folder, unpacked);
  return packStaged(unpacked, out, readManifest(unpacked));
}

/**
 * The addon's loader and sources, with the headers of llama.cpp that they compile against: a build at install needs
 * neither git nor node-llama-cpp. The install script, the ready-made addon and the library for images stand in the
 * packed manifest only; in this repository the one would run at every `pnpm install`, and the others do not exist.
 */
function packNative(staging, out) {
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
      ...Object.fromEntries(
        listPrebuilds(() => {}).flatMap((arch) => [
          [namePrebuild(arch), manifest.version],
          [nameVision(arch), manifest.version],
        ]),
      ),
      ...manifest.optionalDependencies,
    },
  });
}

/** The addon itself, for one processor; built from nothing, as CMake keeps settings of an earlier build. */
export function packPrebuild(arch, staging, out) {
  const folder = join(native, ".cache", `prebuild-${arch}`);
  rmSync(folder, { recursive: true, force: true });
  const args = [join(native, "scripts", "build.mjs"), "--prebuild", "--arch", arch];
  execFileSync(process.execPath, args, { stdio: ["ignore", 2, 2] });
  mkdirSync(staging, { recursive: true });
  // The CUDA kernels come along where nvcc compiled them.
  const built = join(folder, "Release");
  const files = ["cria.node", "libcria-cuda.so"].filter((name) => existsSync(join(built, name)));
  for (const name of files) cpSync(join(built, name), join(staging, name));
  writeFileSync(join(staging, "README.md"), describeInReadme(arch));
  return packStaged(staging, out, { ...describePrebuild(arch), files });
}

/**
 * The library for images, for one processor. It runs on the libraries that the addon has loaded, so that it depends on
 * nothing.
 */
export function packVision(arch, staging, out) {
  execFileSync(process.execPath, [join(native, "scripts", "build-vision.mjs"), "--arch", arch], {
    stdio: ["ignore", 2, 2],
  });
  mkdirSync(staging, { recursive: true });
  cpSync(join(visionFolder(arch), visionLibrary), join(staging, visionLibrary));
  // Its code is in there.
  cpSync(join(unpackLlamaSource("vision"), "LICENSE"), join(staging, "LICENSE-llama.cpp"));
  writeFileSync(join(staging, "README.md"), describeVisionInReadme(arch));
  return packStaged(staging, out, { ...describeVision(arch), files: [visionLibrary, "LICENSE-llama.cpp"] });
}

/** The manifest of the ready-made addon's package: package managers install it only on such machines. */
export function describePrebuild(arch) {
  return {
    ...describePlatformPackage(arch, namePrebuild(arch), "The native addon of @cria/engine, ready-made"),
    main: "cria.node",
    dependencies: { [`@node-llama-cpp/${process.platform}-${arch}`]: readLlamaPin() },
  };
}

/** The same of the library for images. */
export function describeVision(arch) {
  const description = "The library of @cria/engine that lets models see images";
  return { ...describePlatformPackage(arch, nameVision(arch), description), main: visionLibrary };
}

function describePlatformPackage(arch, name, description) {
  const { version, license, engines, publishConfig } = readManifest(native);
  const { platform } = process;
  return {
    name,
    version,
    description: `${description} for ${platform}-${arch}.`,
    license,
    os: [platform],
    cpu: [arch],
    libc: ["glibc"],
    preferUnplugged: true,
    engines,
    publishConfig,
  };
}

function describeVisionInReadme(arch) {
  return `# ${nameVision(arch)}

The library of [@cria/engine](https://www.npmjs.com/package/@cria/engine) that opens projectors and pictures, so that models see images,
for ${process.platform}-${arch}: llama.cpp's mtmd and stb_image. It comes with \`@cria/native\` on such machines; there is nothing to install or
import by hand.
`;
}

function describeInReadme(arch) {
  return `# ${namePrebuild(arch)}

The native addon of [@cria/engine](https://www.npmjs.com/package/@cria/engine), ready-made for ${process.platform}-${arch}. It comes with
\`@cria/native\` on such machines; there is nothing to install or import by hand.
`;
}

function namePrebuild(arch) {
  return `@cria/native-${process.platform}-${arch}`;
}

function nameVision(arch) {
  return `@cria/vision-${process.platform}-${arch}`;
}

function packStaged(staging, out, manifest) {
  writeFileSync(join(staging, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  cpSync(join(root, "LICENSE"), join(staging, "LICENSE"));
  const args = ["pack", "--json", "--pack-destination", resolve(out)];
  const [{ filename }] = JSON.parse(
    execFileSync("npm", args, { cwd: staging, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }),
  );
  return resolve(out, filename.replace("@", "").replace("/", "-"));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = parseArgs({ options: { out: { type: "string", default: join(root, ".cache", "tarballs") } } });
  for (const file of packAll(resolve(values.out))) console.log(file);
}
