import type { Report } from "@cria/trainer";
import type { WorkerInfo } from "../bus/job-bus.js";

/** Most workers that are named when many join or leave together. */
const MOST_LINES = 10;

/** Reports workers that join or leave. */
export class Announcer {
  private helpers = new Set<string>();

  constructor(
    private readonly report: Report | undefined,
    /** True if a worker helps this run. */
    private readonly helps: (worker: WorkerInfo) => boolean,
  ) {}

  setWorkers(workers: readonly WorkerInfo[]): void {
    const now = new Map(workers.filter(this.helps).map((worker) => [worker.id, worker]));
    const joined = [...now.values()].filter(({ id }) => !this.helpers.has(id));
    const left = [...this.helpers].filter((id) => !now.has(id));
    for (const { id, host, slots } of joined.slice(0, MOST_LINES))
      this.say(`worker ${id} on ${host} helps: ${Object.keys(slots).join(", ")}`);
    if (joined.length > MOST_LINES) this.say(`${joined.length - MOST_LINES} more workers help: ${now.size} in all`);
    for (const id of left.slice(0, MOST_LINES)) this.say(`worker ${id} has left`);
    if (left.length > MOST_LINES) this.say(`${left.length - MOST_LINES} more workers have left`);
    this.helpers = new Set(now.keys());
  }

  private say(text: string): void {
    this.report?.({ type: "notice", text });
  }
}
