import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";

/**
 * Debian's allocator otherwise gives large blocks back to the system after each use, and faults them in again. Its OpenBLAS
 * has threads of its own, which OpenMP's, spinning after each elementwise operation, would keep off the cores.
 */
const settings = {
  OMP_WAIT_POLICY: "PASSIVE",
  MALLOC_MMAP_THRESHOLD_: "8589934592",
  MALLOC_TRIM_THRESHOLD_: "17179869184",
  MALLOC_TOP_PAD_: "268435456",
  MALLOC_ARENA_MAX: "1",
};

/** Where python3 with PyTorch is: CRIA_TORCH_PYTHON, the one on PATH, or Debian's. Null when none has it. */
export function findTorch(): { python: string; version: string } | null {
  for (const python of [process.env.CRIA_TORCH_PYTHON, "python3", "/usr/bin/python3"]) {
    if (!python) continue;
    const { status, stdout } = spawnSync(python, ["-c", "import torch; print(torch.__version__)"], {
      encoding: "utf8",
    });
    if (status === 0) return { python, version: stdout.trim() };
  }
  return null;
}

/** A Python process that answers JSON lines (lines.py); it lives as long as the benchmark needs it. */
export class TorchPeer {
  private readonly process: ChildProcessWithoutNullStreams;
  private readonly answers: AsyncIterator<string>;

  constructor(python: string, script: string) {
    const env = { ...process.env, ...settings };
    this.process = spawn(python, [`${import.meta.dirname}/${script}`], { env, stdio: "pipe" });
    this.process.stderr.pipe(process.stderr);
    this.answers = createInterface(this.process.stdout)[Symbol.asyncIterator]();
  }

  async ask<T>(request: { do: string } & Record<string, unknown>): Promise<T> {
    this.process.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.answers.next();
    if (done) throw new Error(`PyTorch's process ended during "${request.do}"`);
    const answer = JSON.parse(value) as T & { error?: string };
    if (answer.error) throw new Error(`PyTorch failed at "${request.do}":\n${answer.error}`);
    return answer;
  }

  close(): void {
    this.process.stdin.end();
  }
}
