import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ClusterView, WorkerState, WorkerView } from "../../api/index.js";
import { describeKinds, describeSlots, listUseless, makeClusterCharts, sortWorkers, sumWorkers } from "./workers.js";

const none = { rollout: 0, score: 0, gradient: 0 };

const makeWorker = (id: string, state: WorkerState, audits = { passed: 3, failed: 0 }): WorkerView => ({
  id,
  host: "barn",
  class: "a",
  state,
  reason: null,
  slots: { rollout: 4, score: 1, gradient: 0 },
  doing: { rollout: 2, score: 0, gradient: 0 },
  done: { rollout: 1200, score: 0, gradient: 5 },
  failed: 0,
  lastFailure: null,
  oldest: 0,
  declined: 0,
  rate: 10,
  audits,
});

describe("workers", () => {
  it("that need attention come first, those that left last", () => {
    const states = ["gone", "ready", "draining", "shut-out", "ready", "stuck", "failing"] as const;
    const sorted = sortWorkers(states.map((state, i) => makeWorker(`w${9 - i}`, state)));
    expect(sorted.map(({ id, state }) => `${id} ${state}`)).toEqual([
      "w6 shut-out",
      "w3 failing",
      "w4 stuck",
      "w5 ready",
      "w8 ready",
      "w7 draining",
      "w9 gone",
    ]);
  });

  it("are counted by current and past work", () => {
    const workers = [
      makeWorker("a", "ready"),
      makeWorker("b", "draining"),
      makeWorker("c", "shut-out", { passed: 1, failed: 2 }),
      makeWorker("d", "gone"),
    ];
    const sums = sumWorkers({ workers } as ClusterView);
    expect(sums).toEqual({ ready: 1, slots: 10, doing: 4, done: 4820, rate: 20, passed: 10, failed: 2 });
  });

  it("without any work are named with the reason", () => {
    const workers: WorkerView[] = [
      makeWorker("a", "ready"),
      { ...makeWorker("b", "failing"), failed: 5, lastFailure: "rollout: no memory" },
      { ...makeWorker("c", "stuck"), oldest: 300 },
      { ...makeWorker("d", "ready"), slots: none, reason: "no user code" },
      { ...makeWorker("e", "ready"), reason: "no user code" },
      { ...makeWorker("f", "gone"), slots: none, reason: "no user code" },
    ];
    expect(listUseless(workers).map(({ id }) => id)).toEqual(["b", "c", "d"]);
    expect(listUseless(workers).map(({ text }) => text)).toEqual([
      expect.stringContaining("5 jobs failed, the last one: rollout: no memory"),
      expect.stringContaining("its oldest job in hand has 300 s"),
      expect.stringContaining("no user code"),
    ]);
  });

  it("have descriptions of their jobs", () => {
    const { slots, doing, done } = makeWorker("a", "ready");
    expect(describeKinds(done)).toBe("1,200 conversations, 5 gradients");
    expect(describeKinds(none)).toBe("none");
    expect(describeSlots({ slots, doing })).toBe("2/4 conversations, 0/1 logprobs");
  });

  it("are drawn over the steps, where the run has numbers; bytes as megabytes", () => {
    const table = { steps: [1, 2], seconds: [1, 2], tokens: [1, 2], heldOut: [] };
    expect(makeClusterCharts({ ...table, columns: { "critic/score/mean": [1, 1] } })).toEqual([]);
    const columns = { "cluster/jobs_here": [4, 5], "cluster/policy_bytes": [2e6, null], "cluster/job_bytes": [0, 5e5] };
    expect(makeClusterCharts({ ...table, columns })).toMatchObject([
      { title: "Jobs done", series: [{ label: "by the coordinator", x: [1, 2], y: [4, 5] }] },
      {
        title: "Megabytes sent",
        series: [
          { label: "weights", x: [1], y: [2] },
          { label: "jobs", x: [1, 2], y: [0, 0.5] },
        ],
      },
    ]);
  });

  it("are drawn by every metric that docs/metrics.md has of them, and by no other", () => {
    const docs = readFileSync(join(import.meta.dirname, "../../../../../docs/metrics.md"), "utf8");
    const rows = [...docs.matchAll(/^\| `cluster\/(?:\{([^`]*)\}|([^`]*))` /gm)];
    const names = rows.flatMap(([, several, one]) => (several ?? one)!.split(","));
    expect(names.length).toBe(17);
    const count = (kept: readonly string[]) => {
      const columns = Object.fromEntries(kept.map((name) => [`cluster/${name}`, [1]]));
      const charts = makeClusterCharts({ steps: [1], seconds: [1], tokens: [1], columns, heldOut: [] });
      return charts.flatMap(({ series }) => series).length;
    };
    for (const name of names) expect(count([name]), name).toBe(1);
    expect(new Set(names).size).toBe(names.length);
  });
});
