// Builds the CUDA kernels (native/kernels) into libcria-cuda.so in the addon's folder, if nvcc of CUDA 13 is installed.
// They are optional: without nvcc, or when they do not compile, training on a GPU uses ggml's operations.
// CRIA_CUDA_ARCHITECTURES=90 (default 80,90) names the GPUs; newer ones compile the PTX of the last one when they
// start.
import { execFile, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { nativeRoot } from "./llama-paths.mjs";

const run = promisify(execFile);
const sources = join(nativeRoot, "kernels");

/** Path of nvcc; null when none compiles for CUDA 13. */
export function findNvcc() {
  const roots = /** @type {string[]} */ ([process.env.CUDA_PATH, process.env.CUDA_HOME].filter(Boolean));
  for (const nvcc of [...roots.map((root) => join(root, "bin", "nvcc")), "nvcc", "/usr/local/cuda/bin/nvcc"]) {
    const { status, stdout } = spawnSync(nvcc, ["--version"], { encoding: "utf8" });
    if (status === 0 && Number(/release (\d+)/.exec(stdout)?.[1]) >= 13) return nvcc;
  }
  return null;
}

function kernelArguments(architectures) {
  const targets = architectures.flatMap((name) => ["-gencode", `arch=compute_${name},code=sm_${name}`]);
  const newest = architectures.at(-1);
  return [
    ...["-O3", "-std=c++17", "-Xcompiler", "-fPIC,-fvisibility=hidden", "-cudart", "static"],
    ...targets,
    ...["-gencode", `arch=compute_${newest},code=compute_${newest}`],
  ];
}

/** Returns the library's path, null when there is none, and a message, null when the library was up to date. */
export async function buildKernels() {
  const out = join(nativeRoot, ".cache", "kernels");
  const library = join(out, "libcria-cuda.so");
  const nvcc = findNvcc();
  if (nvcc === null) return { library: null, said: "CUDA kernels: not built (no nvcc of CUDA 13)" };
  const architectures = (process.env.CRIA_CUDA_ARCHITECTURES ?? "80,90").split(",");
  const names = readdirSync(sources).filter((name) => /\.(cu|cuh|h)$/.test(name));
  const hash = createHash("sha256").update(kernelArguments(architectures).join(" "));
  for (const name of names) hash.update(name).update(readFileSync(join(sources, name)));
  const stamp = hash.digest("hex");
  const stampFile = join(out, "stamp");
  if (existsSync(library) && existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp)
    return { library, said: null };
  const started = Date.now();
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  try {
    const compiled = names.filter((name) => name.endsWith(".cu"));
    const object = (name) => join(out, `${name}.o`);
    await Promise.all(
      compiled.map((name) =>
        run(nvcc, [...kernelArguments(architectures), "-c", join(sources, name), "-o", object(name)]),
      ),
    );
    // Python's packages of CUDA have lib, where a toolkit has lib64.
    const folder = join(dirname(dirname(nvcc)), "lib");
    await run(nvcc, ["-shared", "-cudart", "static", `-L${folder}`, ...compiled.map(object), "-o", library]);
    for (const name of compiled) rmSync(object(name));
    writeFileSync(stampFile, stamp);
    return { library, said: `CUDA kernels: built in ${((Date.now() - started) / 1000).toFixed(1)} s` };
  } catch (error) {
    rmSync(out, { recursive: true, force: true });
    const said = "CUDA kernels: did not compile, training on a GPU takes ggml's operations";
    return { library: null, said: `${said}\n${error.stderr ?? error.message}` };
  }
}
