import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { EngineError } from "@cria/core";
import { callNativeSync, getAddon } from "./native.js";
import { getRuntimeInfo } from "./runtime-info.js";

/** The optional peer that holds llama.cpp's CUDA backend, and its one release that fits the addon. */
const CUDA_PACKAGE = "@node-llama-cpp/linux-x64-cuda";
const CUDA_PACKAGE_VERSION = "3.22.1";

/** One part that `device: "cuda"` needs. */
export interface CudaPart {
  /** Only `kernels` are optional: without them training on the GPU uses ggml's operations. */
  name: "driver" | "cudart" | "cublas" | "package" | "backend" | "device" | "code" | "kernels";
  /** Its path or its release; null when it is missing, or when an earlier part is missing. */
  found: string | null;
  /** The reason it is missing; null when it is found or was not reached. */
  problem: string | null;
  /** Steps that solve the problem. */
  remedy: string | null;
}

const remedies: Record<CudaPart["name"], string> = {
  driver: "install an NVIDIA driver for CUDA 13.0 or newer (580 or newer)",
  cudart: "install the CUDA 13 runtime, or name its folder in CRIA_CUDA_LIBRARIES",
  cublas: "install cuBLAS of CUDA 13, or name its folder in CRIA_CUDA_LIBRARIES",
  package: `npm install ${CUDA_PACKAGE}@${CUDA_PACKAGE_VERSION}`,
  backend: `install ${CUDA_PACKAGE}@${CUDA_PACKAGE_VERSION} again`,
  device: "check nvidia-smi, and that CUDA_VISIBLE_DEVICES does not hide the GPU",
  // Published for compute capability 8.6, 8.9 and 12 as machine code, for others as PTX 9.1, which the driver compiles.
  code: "install an NVIDIA driver for CUDA 13.1 or newer (590 or newer)",
  kernels: "install nvcc of CUDA 13 and build the addon: pnpm --filter @cria/native build",
};

/** Folder of the CUDA backend: `CRIA_CUDA_BACKEND`, else the installed package; null when there is neither. */
function findCudaFolder(): string | null {
  if (process.env.CRIA_CUDA_BACKEND) return process.env.CRIA_CUDA_BACKEND;
  try {
    const require = createRequire(import.meta.url);
    return join(dirname(require.resolve(CUDA_PACKAGE)), "..", "bins", "linux-x64-cuda");
  } catch {
    return null;
  }
}

/** Of libraries that were compared, by path: the process has loaded its own, and a load of a model asks each time. */
const hashes = new Map<string, string>();

function hashLibrary(path: string): string {
  const known = hashes.get(path) ?? createHash("sha256").update(readFileSync(path)).digest("hex");
  hashes.set(path, known);
  return known;
}

/** The reason the backend in a folder does not fit the llama.cpp of this process; null when it fits. */
function findMismatch(folder: string): string | null {
  const manifest = join(folder, "..", "..", "package.json");
  if (existsSync(manifest)) {
    const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
    if (version !== CUDA_PACKAGE_VERSION) return `version ${version} in ${folder}, ${CUDA_PACKAGE_VERSION} is needed`;
  }
  // The backend uses this process's ggml, so it must have been built with exactly that one.
  const base = "libggml-base.so";
  const ours = getRuntimeInfo().librariesFolder;
  if (!existsSync(join(folder, "libggml-cuda.so"))) return `no libggml-cuda.so in ${folder}`;
  if (!existsSync(join(folder, base)) || !existsSync(join(ours, base))) return null;
  return hashLibrary(join(folder, base)) === hashLibrary(join(ours, base))
    ? null
    : `${base} in ${folder} is not that in ${ours}`;
}

/** Folders of CUDA libraries that the system's linker does not know. */
function listLibraryFolders(): string[] {
  const named = (process.env.CRIA_CUDA_LIBRARIES ?? "").split(delimiter).filter(Boolean);
  const roots = [process.env.CUDA_PATH, process.env.CUDA_HOME].filter((root) => root !== undefined);
  if (existsSync("/usr/local"))
    for (const name of readdirSync("/usr/local")) if (/^cuda(-13.*)?$/.test(name)) roots.push(join("/usr/local", name));
  roots.push("/opt/cuda");
  // Container runtimes mount the driver here.
  const drivers = ["/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"];
  return [
    ...named,
    ...roots.flatMap((root) => [join(root, "lib64"), join(root, "targets/x86_64-linux/lib")]),
    ...drivers,
  ];
}

/**
 * All parts that `device: "cuda"` needs, in the order of the search. Loads the backend when all of them are found.
 * @throws EngineError when the addon cannot be loaded.
 */
export function inspectCuda(): CudaPart[] {
  const folder = findCudaFolder();
  const mismatch = folder === null ? null : findMismatch(folder);
  const given = { folder: mismatch ? undefined : (folder ?? undefined), search: listLibraryFolders() };
  return callNativeSync(() => getAddon().loadCuda(given)).map((part) => {
    const name = part.name as CudaPart["name"];
    const problem = name === "package" && mismatch ? mismatch : part.problem;
    return { name, found: part.found, problem, remedy: problem === null ? null : remedies[name] };
  });
}

/** Loads the backend if a model may run on it. @throws EngineError when "cuda" is requested and unavailable. */
export function prepareDevice(device: "auto" | "cpu" | "cuda"): void {
  if (device !== "auto" && device !== "cuda") return;
  const missing = inspectCuda().filter(({ name, problem }) => problem !== null && name !== "kernels");
  if (device === "auto" || missing.length === 0) return;
  throw new EngineError("cannot be used", {
    code: "engine/no-cuda",
    subject: 'device "cuda"',
    expected: "an NVIDIA driver, CUDA 13 with cuBLAS, a GPU, and llama.cpp's CUDA backend",
    received: missing.map(({ name, problem }) => `${name}: ${problem}`).join("; "),
    remedy: `${missing.map(({ remedy }) => remedy).join("; ")}; or use device "cpu"`,
  });
}
