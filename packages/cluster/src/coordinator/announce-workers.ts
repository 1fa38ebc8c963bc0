import type { Report } from "@cria/trainer";
import type { WorkerInfo } from "../bus/job-bus.js";

/** Tells people who comes to help, and who goes. */
export class Announcer {
  private helpers = new Set<string>();

  constructor(
    private readonly report: Report | undefined,
    /** Whether a worker does anything for this run. */
    private readonly helps: (worker: WorkerInfo) => boolean,
  ) {}

  setWorkers(workers: readonly WorkerInfo[]): void {
    const now = new Map(workers.filter(this.helps).map((worker) => [worker.id, worker]));
    for (const [id, { host, slots }] of now) {
      const kinds = Object.keys(slots).join(", ");
      if (!this.helpers.has(id)) this.say(`worker ${id} on ${host} helps: ${kinds}`);
    }
    for (const id of this.helpers) if (!now.has(id)) this.say(`worker ${id} has left`);
    this.helpers = new Set(now.keys());
  }

  private say(text: string): void {
    this.report?.({ type: "notice", text });
  }
}
