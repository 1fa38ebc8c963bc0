import { makeLocal, type Setup } from "./setup.js";
import { type StepTimes, simulateStep } from "./step.js";

const free = Number.POSITIVE_INFINITY;
const cost = (changes: Partial<Setup["costs"]>) => (setup: Setup) => ({
  ...setup,
  costs: { ...setup.costs, ...changes },
});
const wire = (changes: Partial<Setup["network"]>) => (setup: Setup) => ({
  ...setup,
  network: { ...setup.network, ...changes },
});

/** What travel and coordination consist of, and the same setup without it. */
const carriers = {
  // The same code at the coordinator and at workers.
  "CPU for blobs": cost({ clientPut: free, clientGet: free, readSeconds: 0, writeSeconds: 0 }),
  "CPU for sums": cost({ addSeconds: 0 }),
  audits: (setup: Setup) => ({ ...setup, workload: { ...setup.workload, auditShare: 0 } }),
  "coordinator's jobs": cost({ jobSeconds: 0 }),
  optimizer: cost({ stepSeconds: 0 }),
  "server's network": wire({ serverRate: free }),
  "server's streams": cost({ serverPut: free, serverGet: free }),
  "workers' network": wire({ workerRate: free }),
  "lines between sites": wire({ lineRate: free }),
  "round trips": wire({ roundTrip: 0, lineRoundTrip: 0 }),
} satisfies Record<string, (setup: Setup) => Setup>;

export type Limit = "workers" | "uneven work" | keyof typeof carriers;

export interface Explained {
  times: StepTimes;
  /** Shares of the step, at most 1 together: one machine's time over so many; waiting for the longest; travel and coordination. */
  efficiency: number;
  uneven: number;
  travel: number;
  /** What takes most of the step; of travel that without which the step would be shortest. */
  limit: Limit;
}

/** @param alone seconds of the same step in one process without a bus. */
export function explainStep(setup: Setup, alone: number): Explained {
  const times = simulateStep(setup);
  const unhindered = simulateStep(makeUnhindered(setup)).total;
  const efficiency = alone / setup.workers / times.total;
  // Which of two equal plans is found may differ by as much as travel takes where it takes next to nothing.
  const travel = Math.max(0, 1 - unhindered / times.total);
  const uneven = Math.max(0, 1 - efficiency - travel);
  const limit = efficiency >= 0.5 ? "workers" : uneven > travel ? "uneven work" : findCarrier(setup, times);
  return { times, efficiency, uneven, travel, limit };
}

/** As many workers; nothing takes time but their jobs and the tools, and each one's share of the optimizer. */
function makeUnhindered(setup: Setup): Setup {
  const { network, costs, workload } = makeLocal(setup);
  return { ...setup, workload, network, costs: { ...costs, stepSeconds: costs.stepSeconds / setup.workers } };
}

function findCarrier(setup: Setup, { total, microBatchTokens }: StepTimes): keyof typeof carriers {
  const planned = { ...setup, design: { ...setup.design, microBatchTokens: [microBatchTokens] } };
  const saved = (Object.keys(carriers) as (keyof typeof carriers)[]).map((name) => ({
    name,
    seconds: total - simulateStep(carriers[name](planned)).total,
  }));
  return saved.reduce((most, one) => (one.seconds > most.seconds ? one : most)).name;
}
