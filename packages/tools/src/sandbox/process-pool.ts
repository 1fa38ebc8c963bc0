import { ToolError } from "@cria/core";
import type { SandboxLimits, SandboxOutcome } from "./sandbox.js";
import { type ChildOptions, type Job, SandboxChild } from "./sandbox-child.js";

export interface ProcessPoolOptions {
  child: () => Promise<ChildOptions>;
  /** Programs that run at once; the others wait. */
  size: number;
}

export interface PoolRunOptions {
  signal?: AbortSignal;
  /** Called when a child takes the program: its limits count from then on. */
  onStart?: () => void;
}

const ABORTED: SandboxOutcome = { status: "aborted", output: "", truncated: false, error: "error: stopped" };

/**
 * Runs programs in child processes with hard limits: a child that exceeds one is ended, and another one replaces it
 * when needed. A child runs one program at a time. Idle children do not keep this process alive.
 */
export class ProcessPool {
  private readonly idle: SandboxChild[] = [];
  private readonly waiting: (() => void)[] = [];
  private readonly children = new Set<SandboxChild>();
  private running = 0;
  private disposed = false;

  constructor(private readonly options: ProcessPoolOptions) {}

  /**
   * Never throws for an error of the program.
   * @throws Error when no child can be started.
   */
  async run(job: Job, limits: SandboxLimits, { signal, onStart }: PoolRunOptions = {}): Promise<SandboxOutcome> {
    if (!(await this.takePlace(signal))) return ABORTED;
    let child: SandboxChild | undefined;
    let isUsed = false;
    try {
      child = this.takeIdle() ?? (await this.start());
      if (signal?.aborted) return ABORTED;
      isUsed = true;
      onStart?.();
      return await child.run(job, limits, signal);
    } finally {
      // The answer is not held up while the child prepares for the next program.
      void this.giveBack(child, isUsed);
    }
  }

  /** Ends all children, and the programs in them. */
  async dispose(): Promise<void> {
    this.disposed = true;
    for (const child of this.children) child.kill();
    await Promise.all([...this.children].map((child) => child.exited));
  }

  /** Live processes, for tests. */
  get pids(): number[] {
    return [...this.children].flatMap(({ pid }) => pid ?? []);
  }

  /** False when the caller gave up while it waited. */
  private async takePlace(signal?: AbortSignal): Promise<boolean> {
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
    if (signal?.aborted) {
      // This call was woken for a place that it does not take, so it wakes the next one.
      this.waiting.shift()?.();
      return false;
    }
    this.running++;
    return true;
  }

  private takeIdle(): SandboxChild | undefined {
    const child = this.idle.pop();
    return child && this.children.has(child) ? child : child && this.takeIdle();
  }

  private async start(): Promise<SandboxChild> {
    const options = await this.options.child();
    if (this.disposed) throw new ToolError("is closed", { code: "tool/disposed", subject: "sandbox" });
    const child = new SandboxChild(options);
    this.children.add(child);
    void child.exited.then(() => this.children.delete(child));
    await child.becomeReady();
    return child;
  }

  /** Gives the place to the next program when the child is ready again, or has ended. */
  private async giveBack(child: SandboxChild | undefined, isUsed: boolean): Promise<void> {
    if (child !== undefined) {
      try {
        // One that got no program is ready, and says so no second time.
        if (isUsed) await child.becomeReady();
        else child.hold(false);
        if (!this.disposed) this.idle.push(child);
      } catch {
        // The child has ended, by a limit of its program or by the program.
      }
    }
    this.running--;
    this.waiting.shift()?.();
  }
}
