// Builds the library for images (native/vision, over llama.cpp's mtmd; libcria-vision.so on Linux), which opens projectors and pictures, unless stamps
// show that nothing changed. mtmd takes two minutes of CPU time, so it is compiled once per release and kept in
// native/.cache; our own files take seconds. Its sources come with node-llama-cpp. CXX names another compiler than c++.
//
//   node scripts/build-vision.mjs [--target linux-arm64]
import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs, promisify } from "node:util";
import loader from "../index.cjs";
import { findBins } from "./build-llama.mjs";
import { findCompiler } from "./build-tools.mjs";
import {
  BuildError,
  findLibrary,
  nativeRoot,
  readHeaderVersions,
  readLlamaPin,
  unpackLlamaSource,
} from "./llama-paths.mjs";
import { describeTarget, thisTarget } from "./targets.mjs";

const run = promisify(execFile);
const ours = join(nativeRoot, "vision");
const patch = join(ours, "mtmd.patch");

/** The library's file for a target. */
export const nameVision = (target = thisTarget) => loader.nameVisionLibrary(describeTarget(target).platform);

/** The addon's flags: none changes a result. Unused sections, such as those for sound, are left out. */
const flags = "-O2 -std=c++17 -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -ffp-contract=off".split(
  " ",
);

/** Flags by which each linker makes a library of what is used, and shows nothing else of it. */
const linkFlags = {
  linux: ["-shared", "-s", "-Wl,--gc-sections", "-Wl,--exclude-libs,ALL", "-Wl,--no-undefined"],
  // Found in the addon's package where no addon is loaded that has them.
  darwin: ["-dynamiclib", "-Wl,-dead_strip", "-Wl,-rpath,@loader_path/../native-darwin-arm64"],
  win32: ["-shared", "-s", "-static", "-Wl,--gc-sections", "-Wl,--exclude-libs,ALL"],
};

/** Folder of the library for a target; the loader looks for this machine's by its processor. */
export function visionFolder(target = thisTarget) {
  return join(nativeRoot, ".cache", `vision-${target === thisTarget ? process.arch : target}`);
}

function listIncludes(source) {
  const folders = ["include", "ggml/include", "ggml/src", "src", "tools/mtmd", "vendor"];
  return folders.map((folder) => `-isystem${join(source, folder)}`);
}

/** Compiles the files in parallel, one per core. */
async function compileAll({ compiler, arguments: own }, files, args, out) {
  const waiting = [...files];
  const object = (file) => join(out, `${basename(file)}.o`);
  const work = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift())
      await run(compiler || "c++", [...flags, ...own, ...args, "-c", file, "-o", object(file)]);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  return files.map(object);
}

/** Makes `file` with `make`, which receives the path to write, unless it was made from the same inputs before. */
async function makeOnce(file, inputs, make) {
  const stamp = inputs.reduce((hash, input) => hash.update(input).update("\0"), createHash("sha256")).digest("hex");
  const stampFile = `${file}.stamp`;
  if (existsSync(file) && existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return false;
  rmSync(stampFile, { force: true });
  const temporary = `${file}.${process.pid}.tmp`;
  await make(temporary);
  renameSync(temporary, file);
  writeFileSync(stampFile, stamp);
  return true;
}

/** Patches llama.cpp's mtmd: it calls our attention instead of its own, and computes with no memory that it has not written. */
function patchMtmd(source, objects) {
  const mtmd = join(objects, "mtmd");
  cpSync(join(source, "tools", "mtmd"), mtmd, { recursive: true });
  // Pretends to be outside a repository: inside one git applies nothing to files that it ignores.
  const env = { ...process.env, GIT_CEILING_DIRECTORIES: realpathSync(objects) };
  execFileSync("git", ["apply", patch], { cwd: mtmd, env, stdio: ["ignore", "ignore", "pipe"] });
  return mtmd;
}

/** Builds llama.cpp's part, as an archive. */
async function buildMtmd({ compilers, version, source, folder }) {
  const list = (dir) => readdirSync(dir).filter((name) => name.endsWith(".cpp"));
  const archive = join(folder, "mtmd.a");
  const args = [
    `-I${ours}`,
    ...listIncludes(source),
    "-w",
    "-DNDEBUG",
    "-DLLAMA_SHARED",
    "-DGGML_SHARED",
    "-DGGML_BACKEND_SHARED",
  ];
  const own = [patch, join(ours, "tower_attention.h"), join(ours, "cria_vision.h")].map((file) => readFileSync(file));
  await makeOnce(archive, [readLlamaPin(), version, ...flags, ...args.slice(-5), ...own], async (temporary) => {
    const objects = join(folder, "objects");
    rmSync(objects, { recursive: true, force: true });
    mkdirSync(objects, { recursive: true });
    const mtmd = patchMtmd(source, objects);
    const files = [
      ...["clip.cpp", "mtmd.cpp", "mtmd-audio.cpp", "mtmd-image.cpp"].map((name) => join(mtmd, name)),
      ...list(join(mtmd, "models")).map((name) => join(mtmd, "models", name)),
    ];
    const compiled = await compileAll(compilers, files, args, objects);
    await run(`${compilers.prefix}ar`, ["rcs", temporary, ...compiled]);
    rmSync(objects, { recursive: true, force: true });
  });
  return archive;
}

/** Returns the library's path, and a message, null when the library was up to date. @throws BuildError. */
export async function buildVision({ target = thisTarget, bins = findBins(target) } = {}) {
  const compilers = findCompiler(target);
  const compiler = compilers.compiler || "c++";
  const folder = visionFolder(target);
  const library = join(folder, nameVision(target));
  const started = Date.now();
  try {
    mkdirSync(folder, { recursive: true });
    const source = unpackLlamaSource("vision");
    const { llama } = readHeaderVersions(source);
    const version = (await run(compiler, ["--version"])).stdout;
    const archive = await buildMtmd({ compilers, version, source, folder });
    const names = readdirSync(ours)
      .filter((name) => /\.(cc|h)$/.test(name))
      .sort();
    const args = [...listIncludes(source), "-Wall", "-Wextra", `-DCRIA_LLAMA_RELEASE="${llama}"`];
    const inputs = [...names.flatMap((name) => [name, readFileSync(join(ours, name))])];
    // It refers to its libraries by the names under which the process has loaded them, and contains no search path.
    const link = [
      ...linkFlags[describeTarget(target).platform],
      ...["llama", "ggml", "ggml-base"].map((name) => findLibrary(bins, name)),
    ];
    const made = await makeOnce(
      library,
      [...inputs, readFileSync(`${archive}.stamp`), ...flags, ...link.map((part) => basename(part))],
      async (temporary) => {
        const sources = names.filter((name) => name.endsWith(".cc")).map((name) => join(ours, name));
        const objects = await compileAll(compilers, sources, args, folder);
        await run(compiler, [...objects, archive, ...link, "-o", temporary]);
        for (const object of objects) rmSync(object);
      },
    );
    const seconds = ((Date.now() - started) / 1000).toFixed(1);
    return { library, said: made ? `${basename(library)}: built in ${seconds} s` : null };
  } catch (error) {
    if (error instanceof BuildError) throw error;
    throw new BuildError(`${basename(library)} did not compile\n${error.stderr ?? error.message}`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { target } = parseArgs({ options: { target: { type: "string", default: thisTarget } } }).values;
  try {
    const { said } = await buildVision({ target });
    console.log(said ?? `${nameVision(target)}: up to date`);
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    console.error(error.message);
    process.exit(1);
  }
}
