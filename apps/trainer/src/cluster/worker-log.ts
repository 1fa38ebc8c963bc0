import type { WorkerStatus } from "@cria/cluster";
import { colors as pc } from "../terminal/colors.js";

const MINUTE = 60_000;
/** Time between two drawings of the job count, or lines with it. */
const DRAW_MS = 1000;

export interface WorkerLogOptions {
  /** Print only JSON lines on stdout. */
  json: boolean;
  /** Default: stderr, if it is a terminal. */
  isTerminal?: boolean;
  write?: (text: string) => void;
  print?: (line: string) => void;
}

/** Reports a worker's actions in a few lines: joining, leaving, and on a terminal the number of its jobs. */
export class WorkerLog {
  private last = "";
  private isDrawn = false;
  private drawnAt = Number.NEGATIVE_INFINITY;
  /** Times of jobs in the last minute. */
  private readonly times: number[] = [];
  private done = 0;
  private readonly isTerminal: boolean;
  private readonly write: (text: string) => void;
  private readonly print: (line: string) => void;

  /** @param bus its name. */
  constructor(
    private readonly bus: string,
    private readonly options: WorkerLogOptions,
  ) {
    this.isTerminal = options.isTerminal ?? process.stderr.isTTY === true;
    this.write = options.write ?? ((text) => void process.stderr.write(text));
    this.print = options.print ?? console.log;
  }

  show(status: WorkerStatus): void {
    const now = performance.now();
    for (; this.done < status.done; this.done++) this.times.push(now);
    while (this.times.length > 0 && now - this.times[0]! > MINUTE) this.times.shift();
    const { done: _, failed: __, ...changes } = status;
    const state = JSON.stringify(changes);
    if (state !== this.last) this.say(status);
    else this.draw(status, now);
    this.last = state;
  }

  end(): void {
    this.clear();
  }

  private say(status: WorkerStatus): void {
    this.clear();
    if (this.options.json) this.print(JSON.stringify(status));
    else this.write(`${describe(status, this.bus)}\n`);
  }

  private draw({ done, failed }: WorkerStatus, now: number): void {
    if (!this.isTerminal || this.options.json || now - this.drawnAt < DRAW_MS) return;
    this.drawnAt = now;
    this.isDrawn = true;
    const failures = failed > 0 ? `, ${failed} failed` : "";
    this.write(`\r\x1b[K${pc.dim(`${done} jobs done, ${this.times.length} in the last minute${failures}`)}`);
  }

  private clear(): void {
    if (this.isDrawn) this.write("\r\x1b[K");
    this.isDrawn = false;
  }
}

function describe({ id, state, run, class: bits, kinds, done, failed }: WorkerStatus, bus: string): string {
  const name = `worker ${id}`;
  switch (state) {
    case "waiting":
      return `${name} is on ${bus}, and waits for a training`;
    case "preparing":
      return `${name} prepares for training ${run?.slice(0, 12)}`;
    case "working":
      return kinds.length === 0
        ? `${name} cannot help training ${run?.slice(0, 12)}`
        : `${name} does jobs of training ${run?.slice(0, 12)}: ${kinds.join(", ")} (class ${bits})`;
    default:
      return `${name} has left: ${done} jobs done${failed > 0 ? `, ${failed} failed` : ""}`;
  }
}
