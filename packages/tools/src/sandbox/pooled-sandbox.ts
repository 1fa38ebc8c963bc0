import { ProcessPool } from "./process-pool.js";
import {
  countWorkers,
  defaultSandbox,
  type RunOptions,
  type Sandbox,
  type SandboxLimits,
  type SandboxOptions,
  type SandboxOutcome,
} from "./sandbox.js";
import type { ChildOptions } from "./sandbox-child.js";

/** A sandbox's options with their defaults. `childMb`: memory of a child without its program, in MiB. */
export function fillSandboxOptions(options: SandboxOptions, childMb: number): Required<SandboxOptions> {
  const workers = countWorkers(options.memoryMb ?? defaultSandbox.memoryMb, childMb);
  return { ...defaultSandbox, workers, ...options };
}

/** A sandbox whose programs run in a pool of child processes. */
export abstract class PooledSandbox implements Sandbox {
  private readonly pool: ProcessPool;

  /** @param describeChild gives the options of a new child; called for each child. */
  protected constructor(
    private readonly limits: SandboxLimits & { workers: number },
    describeChild: () => Promise<ChildOptions>,
  ) {
    this.pool = new ProcessPool({ child: describeChild, size: limits.workers });
  }

  run(
    code: string,
    { stdin = "", timeoutS = this.limits.timeoutS, ...options }: RunOptions = {},
  ): Promise<SandboxOutcome> {
    return this.pool.run({ code, stdin }, { ...this.limits, timeoutS }, options);
  }

  dispose(): Promise<void> {
    return this.pool.dispose();
  }

  /** Live processes, for tests. */
  get pids(): number[] {
    return this.pool.pids;
  }
}
