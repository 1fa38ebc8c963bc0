/** The kind of this machine. Results of one kind may be compared; the name identifies no single machine. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";
import { getRuntimeInfo } from "@cria/engine";

export interface Machine {
  /** Name of its folder in `results/`, for example "amd-epyc-zen3-avx2-2c". */
  kind: string;
  cpu: string;
  /** Threads that the process may use, and the cores that they share. */
  threads: number;
  cores: number;
  /** GiB. */
  memory: number;
  gpu: string | null;
  node: string;
  /** The engine's own products, for example "avx2". */
  cpuKernel: string;
  /** ggml's build that computes the rest on the CPU, for example "haswell". */
  ggmlBuild: string;
}

export interface Cpu {
  model: string;
  vendor: string;
  /** Numbers of x86's cpuid, null elsewhere. */
  family: number | null;
  number: number | null;
  flags: string[];
  /** Physical cores; null when the system does not tell. */
  cores: number | null;
}

export function readMachine(): Machine {
  const cpu = readCpu();
  const threads = availableParallelism();
  const gpu = findGpu();
  return {
    kind: nameKind(cpu, threads, gpu),
    cpu: cpu.model,
    threads,
    cores: Math.min(threads, cpu.cores ?? threads),
    memory: Math.round(totalmem() / 2 ** 30),
    gpu,
    node: process.version,
    ...describeEngine(),
  };
}

/** Physical cores among the threads that the process may use. */
export function countCores(): number {
  const threads = availableParallelism();
  return Math.min(threads, readCpu().cores ?? threads);
}

function readCpu(): Cpu {
  const model = cpus()[0]?.model.trim() || "unknown";
  try {
    return parseCpuinfo(readFileSync("/proc/cpuinfo", "utf8"), model);
  } catch {
    return { model, vendor: "", family: null, number: null, flags: [process.arch], cores: null };
  }
}

/** Linux's /proc/cpuinfo of x86 and ARM. */
export function parseCpuinfo(text: string, fallbackModel: string): Cpu {
  const read = (key: string) => new RegExp(`^${key}\\s*: (.*)$`, "m").exec(text)?.[1]?.trim();
  const toNumber = (value: string | undefined) => (value === undefined ? null : Number(value));
  const part = read("CPU part");
  const cores = new Set(
    text
      .split("\n\n")
      .map((block) => [/^physical id.*$/m.exec(block)?.[0], /^core id.*$/m.exec(block)?.[0]].join())
      .filter((core) => core !== ","),
  );
  return {
    model: read("model name") ?? (part ? `ARM part ${part}` : fallbackModel),
    vendor: read("vendor_id") ?? "",
    family: toNumber(read("cpu family")),
    number: toNumber(read("model")),
    flags: (read("flags") ?? read("Features") ?? process.arch).split(" "),
    cores: cores.size || null,
  };
}

export function nameKind(cpu: Cpu, threads: number, gpu: string | null): string {
  const architecture = nameArchitecture(cpu);
  const words = cpu.model
    .replace(/\((R|TM)\)|\bCPU\b|\bProcessor\b|\d+th Gen|@.*/gi, " ")
    .toLowerCase()
    .split(/[^a-z0-9.]+/)
    .filter(Boolean);
  // With the architecture known, the model's number says nothing more: "AMD EPYC 7763" and "AMD EPYC" are one kind.
  const brand = architecture ? words.slice(0, 2) : words.slice(0, 4);
  const parts = [...brand, architecture, nameInstructions(cpu.flags), `${threads}c`, gpu && slug(gpu)];
  return parts.filter(Boolean).join("-");
}

const slug = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");

/** By family and model of cpuid: virtual machines often hide the model's name. */
function nameArchitecture({ vendor, family, number, flags }: Cpu): string | null {
  if (family === null || number === null) return null;
  if (vendor === "AuthenticAMD") {
    if (family === 23) return number >= 0x30 ? "zen2" : "zen";
    if (family === 25) return (number >= 0x10 && number < 0x20) || number >= 0x60 ? "zen4" : "zen3";
    if (family === 26) return "zen5";
  }
  if (vendor === "GenuineIntel" && family === 6) {
    if (number === 0x55) return flags.includes("avx512_vnni") ? "cascadelake" : "skylake";
    if (INTEL[number]) return INTEL[number];
  }
  return `f${family}m${number}`;
}

const INTEL: Record<number, string> = {
  63: "haswell",
  79: "broadwell",
  106: "icelake",
  108: "icelake",
  143: "sapphirerapids",
  207: "emeraldrapids",
  173: "graniterapids",
  174: "graniterapids",
  151: "alderlake",
  154: "alderlake",
  183: "raptorlake",
  186: "raptorlake",
};

/** The widest vectors. */
function nameInstructions(flags: readonly string[]): string {
  const classes = { avx512f: "avx512", avx2: "avx2", avx: "avx", sse2: "sse2", sve: "sve", asimd: "neon" };
  for (const [flag, name] of Object.entries(classes)) if (flags.includes(flag)) return name;
  return flags.includes("arm64") ? "neon" : process.arch;
}

function findGpu(): string | null {
  const { status, stdout } = spawnSync("nvidia-smi", ["--query-gpu=name", "--format=csv,noheader"], {
    encoding: "utf8",
  });
  if (status === 0 && stdout.trim()) {
    const names = stdout.trim().split("\n");
    return names.length > 1 ? `${names.length} x ${names[0]}` : names[0]!;
  }
  const others = getRuntimeInfo().devices.filter((name) => name !== "CPU");
  return others.length > 0 ? others.join(", ") : null;
}

/** An engine that does not tell them has them unknown. */
function describeEngine(): Pick<Machine, "cpuKernel" | "ggmlBuild"> {
  const info: ReturnType<typeof getRuntimeInfo> & { cpuKernel?: string; ggmlBuild?: string } = getRuntimeInfo();
  return { cpuKernel: info.cpuKernel ?? "unknown", ggmlBuild: info.ggmlBuild ?? "unknown" };
}

export function describeMachine({ cpu, threads, memory, gpu, node, cpuKernel, ggmlBuild }: Machine): string {
  const parts = [cpu, `${threads} threads`, `${memory} GiB`, gpu ?? "no GPU", `Node ${node}`];
  return `${parts.join(", ")}; kernel ${cpuKernel}, ggml ${ggmlBuild}`;
}
