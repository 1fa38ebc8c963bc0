import { existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { availableParallelism, cpus, totalmem } from "node:os";
import { dirname, resolve } from "node:path";
import type { EngineError } from "@cria/core";
import { type BackendName, type BackendPart, getRuntimeInfo, inspectBackend, inspectVision } from "@cria/engine";
import { defaultImageMemory } from "@cria/engine/internal";
import type { LoadedConfig, TrainConfig } from "@cria/trainer";
import {
  findRunPath,
  listMissingTrainPaths,
  type MemoryNeed,
  type ModelShape,
  readAvailableMemory,
} from "@cria/trainer/internal";
import { formatBytes } from "../terminal/format-bytes.js";
import { bad, type Check, ok } from "./check.js";
import { checkSettings } from "./check-settings.js";
import { examineConfig } from "./examine-config.js";

export interface Diagnosis {
  checks: Check[];
  /** Shape of the config's model; null without a config, or for an unreadable file. */
  model: ModelShape | null;
  memory: MemoryNeed | null;
  /** The parts that the devices "cuda", "metal" and "vulkan" need, in order; empty when the addon does not load. */
  cuda: BackendPart[];
  metal: BackendPart[];
  vulkan: BackendPart[];
}

/** Examines this machine, and a config's demands on it. It loads only the native libraries and the config's algorithms. */
export async function examine(loaded: LoadedConfig<TrainConfig> | null): Promise<Diagnosis> {
  const config = loaded?.values ?? null;
  const parts = { cuda: listParts("cuda"), metal: listParts("metal"), vulkan: listParts("vulkan") };
  const checks = [checkNode(), checkLibraries(), checkKernels(), checkProcessors(config), checkGpu(parts, config)];
  checks.push(checkVision());
  const available = readAvailableMemory();
  checks.push(ok("memory", `${formatBytes(available)} available of ${formatBytes(totalmem())}`));
  if (!loaded || !config) return { checks, model: null, memory: null, ...parts };
  checks.push(await checkDisk(config));
  for (const { message } of listMissingTrainPaths(loaded, ["actor_rollout_ref.model.path"]))
    checks.push(bad("problem", "files", message, "check the path"));
  checks.push(...(await checkSettings(config, loaded.folder)));
  const examined = await examineConfig(config, loaded.folder, available);
  checks.push(...examined.checks);
  return { checks, model: examined.model, memory: examined.memory, ...parts };
}

function checkNode(): Check {
  const [major] = process.versions.node.split(".").map(Number) as [number];
  const found = `Node ${process.versions.node}, ${process.platform} ${process.arch}`;
  return major >= 20 ? ok("runtime", found) : bad("problem", "runtime", found, "install Node 20 or later");
}

function checkLibraries(): Check {
  try {
    const { llamaVersion, ggmlVersion, librariesFolder } = getRuntimeInfo();
    return ok("libraries", `llama.cpp ${llamaVersion}, ggml ${ggmlVersion}, from ${librariesFolder}`);
  } catch (error) {
    const { message, remedy } = error as EngineError;
    return bad("problem", "libraries", message, remedy ?? "npm run bootstrap");
  }
}

/** The kernels, which determine the bits of results on a CPU. */
function checkKernels(): Check {
  const name = "CPU kernel";
  try {
    const { cpuKernel, ggmlBuild, usableCpuKernels } = getRuntimeInfo();
    const chosen = process.env.CRIA_CPU_KERNEL ? "by CRIA_CPU_KERNEL" : "the best";
    return ok(name, `${cpuKernel}, ${chosen} of ${usableCpuKernels.join(", ")}; ggml's build ${ggmlBuild}`);
  } catch {
    // checkLibraries reports why nothing loads, and a kernel that this CPU lacks.
    return bad("problem", name, "not known: the libraries do not load", "see the libraries above");
  }
}

function checkProcessors(config: TrainConfig | null): Check {
  const usable = availableParallelism();
  const threads = config?.trainer.threads ?? usable;
  const found = `${cpus()[0]?.model.trim() ?? "unknown"}, ${usable} cores usable, ${threads} threads`;
  return threads > usable
    ? bad("warning", "processors", found, `set trainer.threads to ${usable} or less: waiting threads spin`)
    : ok("processors", found);
}

function listParts(device: BackendName): BackendPart[] {
  try {
    return inspectBackend(device);
  } catch {
    // checkLibraries reports why the addon does not load.
    return [];
  }
}

/** An unusable GPU matters where one is requested, or where there is one. "auto" means CUDA. */
function checkGpu(all: Record<BackendName, BackendPart[]>, config: TrainConfig | null): Check {
  const name = "GPU";
  const device = config?.trainer.device;
  const examined = device === "metal" || device === "vulkan" ? device : "cuda";
  const parts = all[examined];
  const missing = parts.filter((part) => part.problem !== null && part.name !== "kernels");
  if (parts.length > 0 && missing.length === 0) {
    const found = parts.find((part) => part.name === "device")?.found ?? "";
    return device === "cpu" ? ok(name, `${found}; trainer.device does not use it`) : ok(name, found);
  }
  const found = `${{ cuda: "CUDA", metal: "Metal", vulkan: "Vulkan" }[examined]} cannot be used: ${missing.map((part) => `${part.name}: ${part.problem}`).join("; ") || "no addon"}`;
  const remedy = missing.map((part) => part.remedy).join("; ");
  if (device === examined) return bad("problem", name, found, `${remedy}; or set trainer.device to cpu`);
  // Only the driver shows a GPU; without one the other parts are irrelevant.
  if (parts[0]?.found) return bad("warning", name, found, remedy);
  return ok(name, "no NVIDIA driver that can be used; the CPU computes");
}

/** A missing library only matters to models that see images; one that does not load is a problem. */
function checkVision(): Check {
  const name = "images";
  try {
    const { library, release, problem, remedy } = inspectVision();
    const bound = `unused vectors and files of images stay in memory up to ${formatBytes(defaultImageMemory)}`;
    if (problem === null) return ok(name, `${library}, for llama.cpp ${release}; ${bound}`);
    if (library === null) return ok(name, `${problem}: models see no images; to change that: ${remedy}`);
    return bad("warning", name, problem, remedy ?? "");
  } catch {
    return bad("problem", name, "not known: the libraries do not load", "see the libraries above");
  }
}

async function checkDisk(config: TrainConfig): Promise<Check> {
  let folder = resolve(findRunPath(config));
  while (!existsSync(folder)) folder = dirname(folder);
  const { bavail, bsize } = await statfs(folder);
  const found = `${formatBytes(bavail * bsize)} free at ${folder}`;
  return bavail * bsize < 1e9
    ? bad("warning", "disk", found, "free some space, or set trainer.default_local_dir or max_actor_ckpt_to_keep")
    : ok("disk", found);
}
