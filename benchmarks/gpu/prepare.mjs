// Gathers in a folder all that run.sh needs, for a machine with a GPU and without network, Node or compilers: what npm
// would install there from packed tarballs, with llama.cpp's CUDA library; our kernels; Node's binary.
//   node benchmarks/gpu/prepare.mjs FOLDER [--tarballs DIR] [--architecture 90]
// Needs the npm registry and nvcc of CUDA 13 (CUDA_PATH). --tarballs: what scripts/pack.mjs packed before.
// --architecture assembles llama.cpp's library for that one GPU: see assemble-backend.mjs.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { findNvcc } from "../../native/scripts/build-kernels.mjs";
import { nativeRoot, readLlamaPin, unpackLlamaSource } from "../../native/scripts/llama-paths.mjs";
import { packAll } from "../../scripts/pack.mjs";
import { assembleBackend } from "./assemble-backend.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { tarballs: { type: "string" }, architecture: { type: "string" } },
});
const [target] = positionals;
const nvcc = findNvcc();
if (!target || nvcc === null) {
  console.error(target ? "no nvcc of CUDA 13; name its folder in CUDA_PATH" : "usage: prepare.mjs FOLDER [options]");
  process.exit(1);
}
const folder = resolve(target);
const staging = mkdtempSync(join(tmpdir(), "cria-gpu-"));
const project = join(staging, "project");
const modules = join(project, "node_modules");
const backend = join(modules, "@node-llama-cpp", "linux-x64-cuda", "bins", "linux-x64-cuda");
const bins = join(modules, "@node-llama-cpp", "linux-x64", "bins", "linux-x64");
const pack = (name, cwd, paths) =>
  execFileSync("tar", ["-C", cwd, "-cJf", join(folder, name), ...paths], { env: { ...process.env, XZ_OPT: "-6 -T0" } });

/** Installs as a user does: the tarballs of this checkout, and the CUDA package of the release that they are built for. */
function installProject() {
  const packed = values.tarballs ? resolve(values.tarballs) : join(staging, "tarballs");
  if (!values.tarballs) packAll(packed);
  const tarballs = readdirSync(packed).filter((name) => !name.includes("arm64"));
  const version = readLlamaPin();
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{"name":"gpu","private":true,"type":"module"}');
  const packages = [...tarballs.map((name) => join(packed, name)), `@node-llama-cpp/linux-x64-cuda@${version}`];
  execFileSync("npm", ["install", "--silent", "--no-audit", "--no-fund", ...packages], {
    cwd: project,
    stdio: [0, 2, 2],
  });
  // Not used there: other processors, sandboxes of tools, maps for debuggers, the CUDA package's copies for the CPU.
  for (const name of ["@node-llama-cpp/linux-arm64", "pyodide", "@types", "node-addon-api"])
    rmSync(join(modules, name), { recursive: true, force: true });
  for (const path of readdirSync(modules, { recursive: true, encoding: "utf8" }))
    if (/\.(map|d\.c?ts)$/.test(path)) rmSync(join(modules, path), { force: true });
  for (const name of readdirSync(backend))
    if (!/^libggml-(cuda|base)\.so/.test(name)) rmSync(join(backend, name), { recursive: true });
}

/** Our kernels beside the addon, and the program that checks them. @param {string} nvcc */
function buildKernels(nvcc) {
  const sources = join(nativeRoot, "kernels");
  const files = readdirSync(sources).filter((name) => name.endsWith(".cu"));
  const target = values.architecture ?? "90";
  const flags = ["-O3", "-std=c++17", "-cudart", "static", "-gencode", `arch=compute_${target},code=sm_${target}`];
  // Python's packages of CUDA have lib, where a toolkit has lib64.
  flags.push("--threads", "0", `-L${join(dirname(dirname(nvcc)), "lib")}`);
  const paths = files.map((name) => join(sources, name));
  /** @param {string[]} options */
  const compile = (options) => execFileSync(nvcc, options, { stdio: ["ignore", 2, 2] });
  compile([
    ...flags,
    ...[
      "-gencode",
      `arch=compute_${target},code=compute_${target}`,
      "-Xcompiler",
      "-fPIC,-fvisibility=hidden",
      "-shared",
    ],
    ...[...paths, "-o", join(modules, "@cria", "native-linux-x64", "libcria-cuda.so")],
  ]);
  compile([
    ...[...flags, `-I${sources}`, `-I${join(unpackLlamaSource("headers"), "ggml", "include")}`],
    ...[...paths, join(sources, "tests", "check_kernels.cu"), "-x", "cu", join(sources, "reference.cc")],
    ...["-o", join(project, "check_kernels"), `-L${bins}`, "-lggml-base"],
    ...["-Xlinker", "-rpath=$ORIGIN/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64,--allow-shlib-undefined"],
  ]);
}

/** measure.ts for Node, on the installed packages. */
async function bundleMeasure() {
  const { build } = createRequire(createRequire(join(here, "..", "..", "package.json")).resolve("tsup"))("esbuild");
  await build({
    ...{ entryPoints: [join(here, "measure.ts")], outfile: join(project, "measure.mjs") },
    ...{ bundle: true, platform: "node", target: "node20", format: "esm", external: ["@cria/*"], logLevel: "warning" },
  });
}

mkdirSync(folder, { recursive: true });
try {
  console.error("installing");
  installProject();
  console.error("our kernels");
  buildKernels(nvcc);
  await bundleMeasure();
  for (const name of ["peer.py", "table.py", "cases.json"]) cpSync(join(here, name), join(project, name));
  copyFileSync(process.execPath, join(project, "node"));
  execFileSync("strip", [join(project, "node")]);
  if (values.architecture) {
    const library = join(backend, "libggml-cuda.so");
    const output = join(staging, "libggml-cuda.so");
    await assembleBackend(library, output, {
      architecture: Number(values.architecture),
      cuda: dirname(dirname(nvcc)),
      jobs: availableParallelism(),
      onProgress: (done, total) => process.stderr.write(`\rassembling llama.cpp's kernels: ${done} of ${total}`),
    });
    process.stderr.write("\n");
    renameSync(output, library);
    chmodSync(library, 0o755);
  }
  // Two files, as machines take files up to some size.
  renameSync(join(backend, "libggml-cuda.so"), join(staging, "libggml-cuda.so"));
  pack("backend.tar.xz", staging, ["libggml-cuda.so"]);
  pack("project.tar.xz", staging, ["project"]);
  cpSync(join(here, "run.sh"), join(folder, "run.sh"));
} finally {
  rmSync(staging, { recursive: true, force: true });
}
for (const name of readdirSync(folder))
  console.log(`${join(folder, name)}: ${(statSync(join(folder, name)).size / 1e6).toFixed(1)} MB`);
