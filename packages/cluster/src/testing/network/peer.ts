// A coordinator or a worker in a separate process, for tests of networks. It prints its events, one a line.
//
// peer.ts '{"role": "worker", "id": "a", "servers": "nats://10.201.0.1:4222", ...}'
import { setTimeout as delay } from "node:timers/promises";
import { openBus } from "../../bus/open-bus.js";
import type { NatsBusOptions } from "../../nats/open-nats-bus.js";
import { openNatsStore } from "../../nats/open-nats-store.js";
import { join, rollout } from "../test-jobs.js";

export interface PeerOptions extends Pick<NatsBusOptions, "servers" | "times" | "bounds"> {
  role: "coordinator" | "worker";
  id: string;
  /** Coordinator: number of jobs, a row each. */
  jobs?: number;
  /** Worker: duration of a job, and jobs at once. */
  jobMs?: number;
  slots?: number;
}

export type PeerEvent =
  | { event: "ready" }
  | { event: "lease"; term: number }
  | { event: "lost"; received: string }
  | { event: "begun"; row: number }
  | { event: "result"; row: number; answer: number; worker: string; tries: number }
  | { event: "failed"; row: number; error: string }
  | { event: "problem"; error: string }
  | { event: "end"; stats: Record<string, number> };

const tell = (event: PeerEvent) => process.stdout.write(`${JSON.stringify(event)}\n`);

/** As `openNatsBus` does, without what shares out a training: to load that takes seconds. */
const open = async (options: NatsBusOptions) =>
  openBus(await openNatsStore(options), {
    onProblem: (problem) => tell({ event: "problem", error: problem.message }),
  });

async function coordinate({ id, jobs = 0, ...options }: PeerOptions): Promise<void> {
  const bus = await open(options);
  tell({ event: "ready" });
  void bus.acquireLease(id).then((lease) => {
    tell({ event: "lease", term: lease.term });
    lease.signal.addEventListener("abort", () =>
      tell({ event: "lost", received: String(lease.signal.reason?.received) }),
    );
  });
  if (jobs === 0) return;
  const rows = Array.from({ length: jobs }, (_, row) => row);
  await Promise.all(
    rows.map((row) =>
      bus.submit(rollout, { row }).then(
        ({ value, worker, tries }) => tell({ event: "result", row, answer: value.answer, worker, tries }),
        (error) => tell({ event: "failed", row, error: String(error) }),
      ),
    ),
  );
  // A second result of a redelivered job may still arrive.
  await delay(500);
  tell({ event: "end", stats: { ...bus.stats } });
}

async function work({ id, jobMs = 0, slots = 1, ...options }: PeerOptions): Promise<void> {
  const bus = await open(options);
  const run = async ({ row }: { row: number }) => {
    tell({ event: "begun", row });
    await delay(jobMs);
    return { value: { answer: 2 * row } };
  };
  await join(bus, id, run, slots);
  tell({ event: "ready" });
}

const options: PeerOptions = JSON.parse(process.argv[2]!);
await (options.role === "coordinator" ? coordinate(options) : work(options));
