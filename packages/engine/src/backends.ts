import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { type Device, EngineError } from "@cria/core";
import { callNativeSync, getAddon } from "./native.js";
import { getRuntimeInfo } from "./runtime-info.js";

/** The one release of llama.cpp's backends that fits the addon. */
const PACKAGE_VERSION = "3.22.1";

/** A backend of llama.cpp for GPUs, by the name of the device. */
export type BackendName = Exclude<Device, "auto" | "cpu">;

/** One part that a backend needs. */
export interface BackendPart {
  /**
   * Only `kernels` are optional: without them training on the GPU uses ggml's operations. Metal and Vulkan have four of
   * these.
   */
  name: "driver" | "cudart" | "cublas" | "package" | "backend" | "device" | "code" | "kernels";
  /** Its path or its release; null when it is missing, or when an earlier part is missing. */
  found: string | null;
  /** The reason it is missing; null when it is found or was not reached. */
  problem: string | null;
  /** Steps that solve the problem. */
  remedy: string | null;
}

interface Backend {
  /** The optional peer that holds it is `@node-llama-cpp/<package>`. Null: llama.cpp is compiled with it. */
  package: string | null;
  /** Its module's name, without what the system adds. */
  module: string;
  /** The environment variable that names another folder of it; null: there is none. */
  folderVariable: string | null;
  /** Requirements of the device, for its error. */
  needs: string;
  remedies: Partial<Record<BackendPart["name"], string>>;
}

const backends: Record<BackendName, Backend> = {
  cuda: {
    package: "linux-x64-cuda",
    module: "ggml-cuda",
    folderVariable: "CRIA_CUDA_BACKEND",
    needs: "an NVIDIA driver, CUDA 13 with cuBLAS, a GPU, and llama.cpp's CUDA backend",
    remedies: {
      driver: "install an NVIDIA driver for CUDA 13.0 or newer (580 or newer)",
      cudart: "install the CUDA 13 runtime, or name its folder in CRIA_CUDA_LIBRARIES",
      cublas: "install cuBLAS of CUDA 13, or name its folder in CRIA_CUDA_LIBRARIES",
      device: "check nvidia-smi, and that CUDA_VISIBLE_DEVICES does not hide the GPU",
      // Published for compute capability 8.6, 8.9 and 12 as machine code, for others as PTX 9.1, which the driver compiles.
      code: "install an NVIDIA driver for CUDA 13.1 or newer (590 or newer)",
      kernels: "install nvcc of CUDA 13 and build the addon: pnpm --filter @cria/native build",
    },
  },
  metal: {
    package: null,
    module: "ggml-metal",
    folderVariable: null,
    needs: "a Mac, and a llama.cpp that was compiled with Metal",
    remedies: {
      driver: "only macOS has Metal",
      package: "install @cria/native-darwin-arm64, or build llama.cpp from source (CRIA_BUILD_LLAMA=source)",
      device: "the Mac shows no GPU, as a virtual one may",
    },
  },
  vulkan: {
    package: "linux-x64-vulkan",
    module: "ggml-vulkan",
    folderVariable: "CRIA_VULKAN_BACKEND",
    needs: "Vulkan's loader, a driver with a device that llama.cpp takes, and llama.cpp's Vulkan backend",
    remedies: {
      driver: "install Vulkan's loader and the GPU's driver (on Debian libvulkan1 and mesa-vulkan-drivers)",
      device:
        "start with GGML_VK_VISIBLE_DEVICES=<number of the device>: without it llama.cpp leaves out drivers that compute on the CPU, as lavapipe",
    },
  },
};

/** Names of the devices that need a backend. */
export const listBackends = (): BackendName[] => Object.keys(backends) as BackendName[];

function findRemedy(backend: Backend, part: BackendPart["name"]): string | null {
  const known = backend.remedies[part];
  if (known !== undefined || backend.package === null) return known ?? null;
  const address = `@node-llama-cpp/${backend.package}@${PACKAGE_VERSION}`;
  const isForThis = backend.package.startsWith(`${process.platform}-${process.arch}-`);
  if ((part === "package" || part === "backend") && !isForThis)
    return `no package has it for this system: build llama.cpp's, and name its folder in ${backend.folderVariable}`;
  if (part === "package") return `npm install ${address}`;
  return part === "backend" ? `install ${address} again` : null;
}

/** Folder of a backend: the one that its variable names, else the installed package; null when there is neither. */
export function findBackendFolder(device: BackendName): string | null {
  const backend = backends[device];
  const named = backend.folderVariable === null ? undefined : process.env[backend.folderVariable];
  if (named) return named;
  if (backend.package === null) return null;
  try {
    const require = createRequire(import.meta.url);
    const entry = require.resolve(`@node-llama-cpp/${backend.package}`);
    return join(dirname(entry), "..", "bins", backend.package);
  } catch {
    return null;
  }
}

const isWindows = process.platform === "win32";
/** The file of a backend; llama.cpp gives it the same ending on Linux and macOS. */
const nameModule = (name: string) => (isWindows ? `${name}.dll` : `lib${name}.so`);
/** The file of a library that others link with. */
const nameLibrary = (name: string) => (process.platform === "darwin" ? `lib${name}.dylib` : nameModule(name));

/** SHA-256 of compared libraries, by path. They do not change while the process runs, and each load of a model asks. */
const hashes = new Map<string, string>();

function hashLibrary(path: string): string {
  const known = hashes.get(path) ?? createHash("sha256").update(readFileSync(path)).digest("hex");
  hashes.set(path, known);
  return known;
}

/** The reason the backend in a folder does not fit the llama.cpp of this process; null when it fits. */
function findMismatch(backend: Backend, folder: string): string | null {
  const manifest = join(folder, "..", "..", "package.json");
  if (existsSync(manifest)) {
    const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
    if (version !== PACKAGE_VERSION) return `version ${version} in ${folder}, ${PACKAGE_VERSION} is needed`;
  }
  // The backend uses this process's ggml, so it must have been built with exactly that one.
  const base = nameLibrary("ggml-base");
  const module = nameModule(backend.module);
  const ours = getRuntimeInfo().librariesFolder;
  if (!existsSync(join(folder, module))) return `no ${module} in ${folder}`;
  if (!existsSync(join(folder, base)) || !existsSync(join(ours, base))) return null;
  return hashLibrary(join(folder, base)) === hashLibrary(join(ours, base))
    ? null
    : `${base} in ${folder} is not that in ${ours}`;
}

/** Folders of CUDA libraries that the system's linker does not know. */
function listCudaFolders(): string[] {
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
 * All parts that a device needs, in the order of the search. Loads its backend when all of them are found.
 * @throws EngineError when the addon cannot be loaded.
 */
export function inspectBackend(device: BackendName): BackendPart[] {
  const backend = backends[device];
  const folder = findBackendFolder(device);
  const mismatch = folder === null ? null : findMismatch(backend, folder);
  const search = device === "cuda" ? listCudaFolders() : [];
  const given = { name: device, folder: mismatch ? undefined : (folder ?? undefined), search };
  return callNativeSync(() => getAddon().loadBackend(given)).map((part) => {
    const name = part.name as BackendPart["name"];
    const problem = name === "package" && mismatch ? mismatch : part.problem;
    return { name, found: part.found, problem, remedy: problem === null ? null : findRemedy(backend, name) };
  });
}

/** The parts without which a device cannot be used. */
export function listMissingParts(device: BackendName): BackendPart[] {
  return inspectBackend(device).filter(({ name, problem }) => problem !== null && name !== "kernels");
}

/** Loads the backend if a model may run on it. @throws EngineError when a requested device is unavailable. */
export function prepareDevice(device: Device): void {
  if (device === "cpu") return;
  // The addon refuses other names.
  if (device !== "auto" && !(device in backends)) return;
  const missing = listMissingParts(device === "auto" ? "cuda" : device);
  if (device === "auto" || missing.length === 0) return;
  throw new EngineError("cannot be used", {
    code: `engine/no-${device}`,
    subject: `device "${device}"`,
    expected: backends[device].needs,
    received: missing.map(({ name, problem }) => `${name}: ${problem}`).join("; "),
    remedy: `${missing.map(({ remedy }) => remedy).join("; ")}; or use device "cpu"`,
  });
}
