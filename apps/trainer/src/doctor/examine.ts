import { existsSync, readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { availableParallelism, cpus, freemem, totalmem } from "node:os";
import { dirname, resolve } from "node:path";
import type { EngineError } from "@cria/core";
import { type CudaPart, getRuntimeInfo, inspectCuda, readGguf } from "@cria/engine";
import { findRunPath } from "../checkpoints/open-run.js";
import { listWarnings } from "../config/list-warnings.js";
import { resolvePath } from "../config/load-config.js";
import type { TrainConfig } from "../config/train-config.js";
import { usesLora } from "../train/load-policy.js";
import { estimateMemory, type MemoryItem, type ModelShape, readModelShape } from "./estimate-memory.js";

export type Verdict = "ok" | "warning" | "problem";

/** One thing that was looked at. */
export interface Check {
  name: string;
  verdict: Verdict;
  /** What was found, with its numbers. */
  found: string;
  /** What to do about it; null when all is well. */
  remedy: string | null;
}

export interface Diagnosis {
  checks: Check[];
  /** Of the config's model; null without a config, or when the file cannot be read. */
  model: ModelShape | null;
  memory: { items: MemoryItem[]; needed: number; available: number; fits: boolean } | null;
  /** Everything that device "cuda" needs, in order; empty when the addon does not load. */
  cuda: CudaPart[];
}

/** Architectures that can be trained. */
const TRAINABLE = ["llama", "qwen2", "qwen3"];

const ok = (name: string, found: string): Check => ({ name, verdict: "ok", found, remedy: null });
const bad = (verdict: Verdict, name: string, found: string, remedy: string): Check => ({
  name,
  verdict,
  found,
  remedy,
});

/** Looks at this machine, and at what a config would need of it. Nothing is loaded but the native libraries. */
export async function examine(given: { config: TrainConfig; folder: string } | null): Promise<Diagnosis> {
  const cuda = listCudaParts();
  const checks = [
    checkNode(),
    checkLibraries(),
    checkKernels(),
    checkProcessors(given?.config ?? null),
    checkCuda(cuda, given?.config ?? null),
  ];
  const available = readAvailableMemory();
  checks.push(ok("memory", `${formatBytes(available)} available of ${formatBytes(totalmem())}`));
  if (!given) return { checks, model: null, memory: null, cuda };
  checks.push(await checkDisk(given.config));
  for (const { key, found, remedy } of listWarnings(given.config))
    checks.push(bad("warning", "learning rate", found, `${key}: ${remedy}`));
  const path = resolvePath(given.folder, given.config.actor_rollout_ref.model.path);
  let model: ModelShape;
  try {
    model = readModelShape(await readGguf(path));
  } catch (error) {
    checks.push(bad("problem", "model", (error as Error).message, "check actor_rollout_ref.model.path"));
    return { checks, model: null, memory: null, cuda };
  }
  checks.push(checkModel(path, model, given.config));
  const items = estimateMemory(model, given.config);
  const needed = items.reduce((sum, item) => sum + item.bytes, 0);
  const memory = { items, needed, available, fits: needed <= available };
  checks.push(checkFit(memory));
  return { checks, model, memory, cuda };
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

/** What decides the bits of results on a CPU. */
function checkKernels(): Check {
  const name = "CPU kernel";
  try {
    const { cpuKernel, ggmlBuild, usableCpuKernels } = getRuntimeInfo();
    const chosen = process.env.CRIA_CPU_KERNEL ? "by CRIA_CPU_KERNEL" : "the best";
    return ok(name, `${cpuKernel}, ${chosen} of ${usableCpuKernels.join(", ")}; ggml's build ${ggmlBuild}`);
  } catch {
    // checkLibraries says why nothing loads, and of a kernel that this CPU lacks.
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

function listCudaParts(): CudaPart[] {
  try {
    return inspectCuda();
  } catch {
    // checkLibraries says why the addon does not load.
    return [];
  }
}

/** Not being able to use a GPU matters where one is asked for, or where there is one. */
function checkCuda(parts: CudaPart[], config: TrainConfig | null): Check {
  const name = "GPU";
  const missing = parts.filter((part) => part.problem !== null && part.name !== "kernels");
  const asked = config?.trainer.device === "cuda";
  if (parts.length > 0 && missing.length === 0) {
    const found = parts.find((part) => part.name === "device")?.found ?? "";
    return config?.trainer.device === "cpu" ? ok(name, `${found}; trainer.device leaves it aside`) : ok(name, found);
  }
  const found = `CUDA cannot be used: ${missing.map((part) => `${part.name}: ${part.problem}`).join("; ") || "no addon"}`;
  const remedy = missing.map((part) => part.remedy).join("; ");
  if (asked) return bad("problem", name, found, `${remedy}; or set trainer.device to cpu`);
  // The driver alone tells of a GPU; without one everything else is beside the point.
  if (parts[0]?.found) return bad("warning", name, found, remedy);
  return ok(name, "no NVIDIA driver that can be used; the CPU computes");
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

function checkModel(path: string, model: ModelShape, config: TrainConfig): Check {
  const { architecture, layers, embedding, vocabulary } = model;
  const found = `${path}: ${architecture}, ${layers} layers of ${embedding}, vocabulary ${vocabulary}, ${formatBytes(model.fileBytes)}`;
  if (!TRAINABLE.includes(architecture))
    return bad("problem", "model", found, `choose a model of one of these architectures: ${TRAINABLE.join(", ")}`);
  if (!usesLora(config) && model.fileBytes < 4 * model.parameters * 0.99)
    return bad(
      "problem",
      "model",
      `${found}; full training needs F32 weights`,
      "set actor_rollout_ref.model.lora_rank above 0, or use an F32 GGUF",
    );
  return ok("model", found);
}

function checkFit({ items, needed, available, fits }: NonNullable<Diagnosis["memory"]>): Check {
  const found = `about ${formatBytes(needed)} of ${formatBytes(available)}`;
  const largest = items.find((item) => item.key);
  const remedy = `the largest part is ${largest?.name} (${formatBytes(largest?.bytes ?? 0)}): lower ${largest?.key}`;
  if (!fits) return bad("problem", "this config", `does not fit: ${found}`, remedy);
  return needed > 0.85 * available
    ? bad("warning", "this config", `fits barely: ${found}`, remedy)
    : ok("this config", `fits: ${found}`);
}

/** What a process can still get: Linux's MemAvailable, or less where a container limits it. */
function readAvailableMemory(): number {
  let available = freemem();
  try {
    const kilobytes = /MemAvailable:\s+(\d+) kB/.exec(readFileSync("/proc/meminfo", "utf8"))?.[1];
    if (kilobytes) available = 1024 * Number(kilobytes);
  } catch {
    // Not Linux: free memory is what the system says.
  }
  const limit = process.constrainedMemory();
  return limit > 0 && limit < totalmem() ? Math.min(available, limit - process.memoryUsage.rss()) : available;
}

export function formatBytes(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(2)} GB`;
  return bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e3).toFixed(1)} kB`;
}
