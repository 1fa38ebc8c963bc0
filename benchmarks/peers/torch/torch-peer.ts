import { spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describeCheck } from "../../report.js";
import type { PeerCheck, Row } from "../../row.js";
import { LineProcess } from "../line-process.js";
import { measurePeak } from "../machine-peaks.js";
import { findFault, nameBlas, type TorchProducts } from "./judge-torch.js";

/**
 * Debian's allocator otherwise gives large blocks back to the system after each use, and faults them in again. Its
 * OpenBLAS has its own threads, which OpenMP's, spinning after each elementwise operation, would keep off the cores.
 */
const settings = {
  OMP_WAIT_POLICY: "PASSIVE",
  MALLOC_MMAP_THRESHOLD_: "8589934592",
  MALLOC_TRIM_THRESHOLD_: "17179869184",
  MALLOC_TOP_PAD_: "268435456",
  MALLOC_ARENA_MAX: "1",
};

/** A Python with PyTorch, and the check of its products. */
export interface Torch {
  python: string;
  threads: number;
  /** "PyTorch" and its version: the peer's name in rows. */
  name: string;
  check: PeerCheck;
}

/**
 * CRIA_TORCH_PYTHON, the python3 on PATH, or Debian's, the first that has PyTorch; its products are compared with the
 * machine's multiply-adds. Null when none has it.
 */
export async function openTorch(threads: number, log: (text: string) => void): Promise<Torch | null> {
  const python = [process.env.CRIA_TORCH_PYTHON, "python3", "/usr/bin/python3"].find(
    (one) => one && spawnSync(one, ["-c", "import torch"]).status === 0,
  );
  if (!python) {
    log("no python3 with PyTorch (CRIA_TORCH_PYTHON names one): rows come without it");
    return null;
  }
  const peer = new TorchPeer({ python, threads }, "check_peer.py");
  try {
    const described = await peer.ask<{ version: string; libraries: string[]; hasMkl: boolean }>({
      do: "describe",
      threads,
    });
    const sgemm = async () => (await peer.ask<{ flops: number }>({ do: "sgemm", size: 1536, seconds: 1 })).flops / 1e9;
    // In turn, the best of each: other work of the machine affects both.
    let [gflops, peakGflops] = [0, 0];
    for (let i = 0; i < 3; i++) {
      gflops = Math.max(gflops, await sgemm());
      peakGflops = Math.max(peakGflops, (await measurePeak("f32", threads, 0.5)) / 1e9);
    }
    const products: TorchProducts = { ...described, gflops, peakGflops };
    const name = `PyTorch ${described.version}`;
    const blas = nameBlas(products);
    const check = { peer: name, blas, threads, gflops, peakGflops, fault: findFault(products) };
    log(describeCheck(check));
    return { python, threads, name, check };
  } finally {
    peer.close();
  }
}

/** A row's columns of PyTorch: its number, and its fault if it has one. None without PyTorch or without a number. */
export function besideTorch(torch: Torch | null, value: number | undefined): Pick<Row, "peers" | "crippled"> {
  if (!torch || value === undefined) return { peers: {} };
  const { name, check } = torch;
  return { peers: { [name]: value }, ...(check.fault && { crippled: { [name]: check.fault } }) };
}

/**
 * Folder of OpenBLAS' own libblas.so.3; null where it is not installed. Debian's PyTorch loads the machine's
 * alternative of that name, which may be reference BLAS: with this folder first in the search path it loads OpenBLAS.
 */
export function findOpenBlas(libraries = "/usr/lib"): string | null {
  if (!existsSync(libraries)) return null;
  for (const machine of readdirSync(libraries))
    for (const kind of ["openblas-pthread", "openblas-openmp"]) {
      const folder = join(libraries, machine, kind);
      if (existsSync(join(folder, "libblas.so.3"))) return folder;
    }
  return null;
}

/** A Python process that answers JSON lines (lines.py); it lives as long as the benchmark needs it. */
export class TorchPeer {
  private readonly process: LineProcess;

  constructor({ python, threads }: Pick<Torch, "python" | "threads">, script: string, openblas = findOpenBlas()) {
    const search = [openblas, process.env.LD_LIBRARY_PATH].filter(Boolean).join(":");
    const env = {
      ...process.env,
      ...settings,
      OPENBLAS_NUM_THREADS: String(threads),
      ...(search && { LD_LIBRARY_PATH: search }),
    };
    const child = spawn(python, [`${import.meta.dirname}/${script}`], { env, stdio: ["pipe", "pipe", "inherit"] });
    this.process = new LineProcess(child);
  }

  async ask<T>(request: { do: string } & Record<string, unknown>): Promise<T> {
    this.process.write(JSON.stringify(request));
    const answer = await this.process.read<T & { error?: string }>(`PyTorch's process ended during "${request.do}"`);
    if (answer.error) throw new Error(`PyTorch failed at "${request.do}":\n${answer.error}`);
    return answer;
  }

  close(): void {
    this.process.end();
  }
}
