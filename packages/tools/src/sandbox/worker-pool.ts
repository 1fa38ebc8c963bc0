import { readFileSync } from "node:fs";
import { type ResourceLimits, Worker } from "node:worker_threads";
import { makeOutputBuffer, readOutput } from "./output-buffer.mjs";

/** How a program ended; anything but `ok` comes with an error text. */
export type SandboxStatus = "ok" | "error" | "cpu" | "timeout" | "memory" | "aborted" | "crashed";

export interface SandboxOutcome {
  status: SandboxStatus;
  /** What the program wrote, up to the output limit, also when it was stopped. */
  output: string;
  truncated: boolean;
  /** Written for the reader of the output: the program's own error, or why it was stopped. */
  error?: string;
}

export interface SandboxLimits {
  /** CPU time of the program in seconds. Where the system does not tell it of a thread, wall time stands in for it. */
  cpuS: number;
  /** Wall time in seconds, from when a worker takes the program; sleeping counts. */
  timeoutS: number;
  outputBytes: number;
}

export interface WorkerPoolOptions {
  /** The worker's file. It posts `{ ready, cpuFile }`, takes `{ job, output }`, answers `{ done, status, error }`. */
  file: URL;
  workerData: () => Promise<unknown>;
  /** Programs that run at once; the others wait. */
  size: number;
  /** Whether a worker may take another program after one that ended by itself. */
  reuse: boolean;
  resourceLimits: ResourceLimits;
  /** Seconds until a worker must be ready. */
  startTimeoutS: number;
}

interface Ready {
  worker: Worker;
  cpuFile: string | null;
}

const ABORTED: SandboxOutcome = { status: "aborted", output: "", truncated: false, error: "error: stopped" };

/** The kernel's clock ticks per second, in which /proc gives CPU time. */
const TICKS_PER_S = 100;

/**
 * Runs programs in worker threads with hard limits: a worker that exceeds one is ended and replaced. One program at a
 * time has a worker to itself. Idle workers do not keep the process alive.
 */
export class WorkerPool {
  private readonly idle: Promise<Ready>[] = [];
  private readonly waiting: (() => void)[] = [];
  private readonly workers = new Set<Worker>();
  private running = 0;
  private disposed = false;

  constructor(private readonly options: WorkerPoolOptions) {}

  /** Never throws for what the program does. @throws Error when no worker can be started. */
  async run(job: unknown, limits: SandboxLimits, signal?: AbortSignal): Promise<SandboxOutcome> {
    await this.takePlace(signal);
    try {
      if (signal?.aborted) return ABORTED;
      const ready = await (this.idle.pop() ?? this.start());
      const outcome = signal?.aborted ? ABORTED : await this.runIn(ready, job, limits, signal);
      const ended = outcome.status === "ok" || outcome.status === "error";
      if (this.options.reuse && ended && !this.disposed) {
        ready.worker.unref();
        this.idle.push(Promise.resolve(ready));
      } else {
        await ready.worker.terminate();
        if (!this.options.reuse) this.prepare();
      }
      return outcome;
    } finally {
      this.running--;
      this.waiting.shift()?.();
    }
  }

  /** Ends all workers, and the programs in them. */
  async dispose(): Promise<void> {
    this.disposed = true;
    await Promise.all([...this.workers].map((worker) => worker.terminate()));
    await Promise.allSettled(this.idle);
  }

  /** Workers that live, for tests. */
  get workerCount(): number {
    return this.workers.size;
  }

  private async takePlace(signal?: AbortSignal): Promise<void> {
    while (this.running >= this.options.size && !signal?.aborted) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          signal?.removeEventListener("abort", leave);
          resolve();
        };
        const leave = () => {
          this.waiting.splice(this.waiting.indexOf(wake), 1);
          resolve();
        };
        this.waiting.push(wake);
        signal?.addEventListener("abort", leave, { once: true });
      });
    }
    this.running++;
  }

  /** Starts the worker of the next program while nobody waits for it. */
  private prepare(): void {
    if (this.disposed || this.idle.length + this.running > this.options.size) return;
    const ready = this.start();
    ready.then(
      ({ worker }) => worker.unref(),
      () => this.idle.splice(this.idle.indexOf(ready), 1),
    );
    this.idle.push(ready);
  }

  private async start(): Promise<Ready> {
    const { file, workerData, resourceLimits, startTimeoutS } = this.options;
    const data = await workerData();
    if (this.disposed) throw new Error("the sandbox is closed");
    // No environment, and no way to this process's standard streams; nobody reads them, since a stream that is read
    // would keep this process alive.
    const worker = new Worker(file, {
      workerData: data,
      env: {},
      stdout: true,
      stderr: true,
      execArgv: [],
      resourceLimits,
    });
    this.workers.add(worker);
    worker.once("exit", () => this.workers.delete(worker));
    return new Promise<Ready>((resolve, reject) => {
      const timer = setTimeout(() => fail(new Error(`not ready after ${startTimeoutS} s`)), startTimeoutS * 1000);
      const fail = (error: Error) => {
        clearTimeout(timer);
        void worker.terminate();
        reject(error);
      };
      worker.once("error", fail);
      worker.once("exit", (code) => fail(new Error(`exited with code ${code} before it was ready`)));
      worker.once("message", ({ cpuFile }: { cpuFile: string | null }) => {
        clearTimeout(timer);
        worker.removeAllListeners("error");
        resolve({ worker, cpuFile });
      });
    });
  }

  private runIn(ready: Ready, job: unknown, limits: SandboxLimits, signal?: AbortSignal): Promise<SandboxOutcome> {
    const { worker } = ready;
    const buffer = makeOutputBuffer(limits.outputBytes);
    worker.ref();
    return new Promise((resolve) => {
      const timers = new Set<NodeJS.Timeout>();
      const after = (ms: number, then: () => void) => {
        const timer = setTimeout(() => {
          timers.delete(timer);
          then();
        }, ms);
        timers.add(timer);
      };
      const finish = (status: SandboxStatus, error?: string) => {
        for (const timer of timers) clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        worker.removeAllListeners("message");
        worker.removeAllListeners("error");
        worker.removeAllListeners("exit");
        // A late failure of this worker concerns nobody.
        worker.on("error", () => {});
        worker.once("exit", () => this.workers.delete(worker));
        const { text, truncated } = readOutput(buffer);
        resolve({ status, output: text, truncated, ...(error === undefined ? {} : { error }) });
      };
      const abort = () => finish("aborted", ABORTED.error);
      const cpuError = `error: stopped after ${limits.cpuS} s of CPU time`;
      const startedCpu = readCpuS(ready.cpuFile);
      // CPU time runs no faster than the clock: the next look is due when all that is left could have been used.
      const watchCpu = (leftS: number): void =>
        after(Math.max(leftS * 1000, 10), () => {
          const used = (readCpuS(ready.cpuFile) ?? Number.POSITIVE_INFINITY) - (startedCpu ?? 0);
          if (used >= limits.cpuS) finish("cpu", cpuError);
          else watchCpu(limits.cpuS - used);
        });
      worker.removeAllListeners("exit");
      worker.once("message", ({ status, error }: { status: SandboxStatus; error?: string }) => finish(status, error));
      worker.once("error", (error: Error & { code?: string }) => {
        const memory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
        finish(memory ? "memory" : "crashed", memory ? "error: out of memory" : `error: crashed (${error.message})`);
      });
      worker.once("exit", (code) => finish("crashed", `error: crashed (exit code ${code})`));
      after(limits.timeoutS * 1000, () => finish("timeout", `error: stopped after ${limits.timeoutS} s`));
      watchCpu(limits.cpuS);
      signal?.addEventListener("abort", abort, { once: true });
      worker.postMessage({ job, output: buffer });
    });
  }
}

/** Seconds that a thread has used, from the 14th and 15th field of its stat file; null where there is none. */
function readCpuS(file: string | null): number | null {
  if (file === null) return null;
  try {
    const fields = readFileSync(file, "utf8").split(") ").pop()!.split(" ");
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S;
  } catch {
    return null;
  }
}
