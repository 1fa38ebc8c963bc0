import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { readCpuSeconds } from "../process-cpu.js";

/** Options of a worker's start. */
export interface WorkerSetup {
  id: string;
  /** Its environment. */
  folder: string;
  modelDir: string;
  threads: number;
  /** Conversations at once; default: as many as the training's config says. */
  slots?: number;
}

/** A worker in a separate process, on the same sources as this one. */
export class WorkerProcess {
  private readonly child: ChildProcess;

  constructor(url: string, prefix: string, setup: WorkerSetup) {
    const program = join(import.meta.dirname, "training-worker.ts");
    this.child = spawn(process.execPath, [...process.execArgv, program, url, prefix, JSON.stringify(setup)], {
      stdio: ["pipe", "ignore", "inherit"],
    });
  }

  /** Seconds of CPU that it has used. @throws Error when it has ended. */
  cpuSeconds(): number {
    if (!this.isRunning) throw new Error(`a worker ended with ${this.child.exitCode ?? this.child.signalCode}`);
    return readCpuSeconds(this.child.pid!);
  }

  private get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Makes it give back its jobs in hand. */
  async close(): Promise<void> {
    this.child.stdin!.end();
    if (this.isRunning) await once(this.child, "exit");
  }
}
