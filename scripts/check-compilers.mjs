// Checks that every file of native/src compiles with another compiler, without a warning: CMake's own flags for each
// file, but syntax and warnings only, nothing is built.
//
//   node scripts/check-compilers.mjs [--only cpu,math] [--new] [--record] clang++ [x86_64-w64-mingw32-g++-posix ...]
//
// --only takes only the files of these folders of native/src. --record writes a success into
// tests/compiled-sources.json: the SHA-256 of everything that a compiler reads, by compiler and version. --new skips
// compilations recorded there. Prints a line for each compiler. The exit code is 1 when one warns, 2 when one is not
// installed.
import { execFile, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { findBins } from "../native/scripts/build-llama.mjs";
import { findLibrary, nativeRoot, unpackLlamaSource } from "../native/scripts/llama-paths.mjs";

const run = promisify(execFile);
const require = createRequire(join(nativeRoot, "package.json"));

/** CMake's definitions; libraries only need to exist, since nothing is linked. */
function listDefinitions(compiler) {
  const source = unpackLlamaSource("headers");
  const bins = findBins();
  const cross = /^(\w+)-linux-gnu-/.exec(compiler)?.[1];
  const forWindows = compiler.includes("-mingw32-");
  return {
    CMAKE_EXPORT_COMPILE_COMMANDS: "ON",
    CMAKE_CXX_COMPILER: compiler,
    ...(cross ? { CMAKE_SYSTEM_NAME: "Linux", CMAKE_SYSTEM_PROCESSOR: cross } : {}),
    ...(forWindows ? { CMAKE_SYSTEM_NAME: "Windows", CMAKE_SYSTEM_PROCESSOR: "AMD64" } : {}),
    LLAMA_SOURCE: source,
    LLAMA_BINS: bins,
    LLAMA_LIBRARY: findLibrary(bins, "llama"),
    GGML_LIBRARY: findLibrary(bins, "ggml"),
    GGML_BASE_LIBRARY: findLibrary(bins, "ggml-base"),
    LLAMA_RELEASE: "checked",
    GGML_RELEASE: "checked",
    NODE_ADDON_API: dirname(require.resolve("node-addon-api/package.json")),
    NODE_API: require("node-api-headers").include_dir,
  };
}

/** `{ file, command }` of each source, as CMake would compile it. */
export async function listCommands(compiler, folder) {
  const definitions = Object.entries(listDefinitions(compiler)).map(([key, value]) => `-D${key}=${value}`);
  await run("cmake", ["-S", nativeRoot, "-B", folder, ...definitions]);
  return JSON.parse(readFileSync(join(folder, "compile_commands.json"), "utf8"));
}

/**
 * The number of checked files, and the compiler's messages about each failing one.
 * @param {string} compiler @param {string[] | null} only parts of native/src; null: all
 */
export async function checkCompiler(compiler, only = null) {
  const folder = mkdtempSync(join(tmpdir(), "cria-compiler-"));
  const problems = [];
  try {
    const all = await listCommands(compiler, folder);
    const commands = only ? all.filter(({ file }) => only.some((name) => file.includes(`/src/${name}/`))) : all;
    const waiting = [...commands];
    const work = async () => {
      for (let next = waiting.pop(); next; next = waiting.pop()) {
        const { file, command } = next;
        const { stderr, code = 0 } = await run("sh", ["-c", `${command} -fsyntax-only`], { cwd: folder }).catch(
          (e) => e,
        );
        if (code !== 0 || stderr) problems.push(`${relative(nativeRoot, file)}:\n${stderr}`);
      }
    };
    await Promise.all(Array.from({ length: availableParallelism() }, work));
    return { files: commands.length, problems };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const recordFile = join(dirname(dirname(fileURLToPath(import.meta.url))), "tests", "compiled-sources.json");
const readRecord = () => JSON.parse(readFileSync(recordFile, "utf8"));

/**
 * SHA-256 of everything that the compiler reads, except the system's own headers: sources, flags, and the releases of
 * included libraries.
 */
export function hashSources() {
  const hash = createHash("sha256");
  const folders = ["include", "kernels", "src"].flatMap((folder) =>
    readdirSync(join(nativeRoot, folder), { recursive: true }).map((file) => join(folder, file)),
  );
  for (const file of [...folders, "CMakeLists.txt", "package.json"].sort()) {
    const path = join(nativeRoot, file);
    if (statSync(path).isFile()) hash.update(`\0${file}\0`).update(readFileSync(path));
  }
  return hash.digest("hex");
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { only: { type: "string" }, new: { type: "boolean" }, record: { type: "boolean" } },
  });
  for (const compiler of positionals) await report(compiler, values);
}

/** @param {string} compiler @param {{ only?: string, new?: boolean, record?: boolean }} options */
async function report(compiler, { only, new: skipsKnown, record }) {
  const { status, stdout } = spawnSync(compiler, ["--version"], { encoding: "utf8" });
  if (status !== 0) {
    console.error(`${compiler} is not installed; run: scripts/install-test-tools.sh`);
    process.exitCode ||= 2;
    return;
  }
  const version = stdout.split("\n")[0];
  const key = only ? `${version}, ${only}` : version;
  if (skipsKnown && readRecord()[key] === hashSources()) {
    console.log(`${version}: nothing new since it compiled without a warning`);
    return;
  }
  const { files, problems } = await checkCompiler(compiler, only?.split(","));
  console.log(`${version}: ${files} files, ${problems.length} with errors or warnings`);
  for (const problem of problems) console.log(problem);
  if (problems.length > 0) process.exitCode = 1;
  else if (record) writeFileSync(recordFile, `${JSON.stringify({ ...readRecord(), [key]: hashSources() }, null, 2)}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
