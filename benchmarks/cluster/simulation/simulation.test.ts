/** Closed forms and laws of conservation: a setup in which one thing alone takes time has a time that can be written down. */
import { describe, expect, it } from "vitest";
import { type Explained, explainStep } from "./explain-step.js";
import { Fabric } from "./fabric.js";
import { simulateGradients } from "./gradients.js";
import { countTrained, shapes } from "./models.js";
import { simulateRollouts } from "./rollouts.js";
import { makeLocal, PIECE_BYTES, type Setup, WEIGHT_BYTES } from "./setup.js";
import { simulateBroadcast, simulateStep } from "./step.js";
import { type Conversation, cutPlan, defaultWorkload, drawConversations, planMicroBatches } from "./workload.js";

const free = Number.POSITIVE_INFINITY;
const WEIGHTS = 1e6;
const BYTES = WEIGHTS * WEIGHT_BYTES;

interface Changes {
  network?: Partial<Setup["network"]>;
  design?: Partial<Setup["design"]>;
  costs?: Partial<Setup["costs"]>;
  workload?: Partial<Setup["workload"]>;
  speed?: number;
  slots?: number;
}

/** Nothing takes time but jobs: 100 tokens a second of each kind, however many conversations there are. */
function makeSetup(workers: number, changes: Changes = {}): Setup {
  const { speed = 1, slots = 4 } = changes;
  const base: Setup = {
    shape: shapes["0.5B"],
    training: "lora",
    workers,
    speed,
    slots,
    workload: { ...defaultWorkload, prompts: 4, samples: 8, auditShare: 0, toolSeconds: 0 },
    network: { serverRate: free, workerRate: free, roundTrip: 0, sites: 1, lineRate: free, lineRoundTrip: 0 },
    design: {
      microBatchTokens: [512],
      sum: "flat",
      workersPerLeaf: null,
      piecesInFlight: 1,
      hashing: "measured",
      auditTime: null,
    },
    costs: {
      sampled: [
        [1, 100],
        [32, 100],
      ],
      scored: 100,
      trained: 100,
      weights: WEIGHTS,
      addSeconds: 0,
      stepSeconds: 0,
      readSeconds: 0,
      writeSeconds: 0,
      clientPut: free,
      clientGet: free,
      serverPut: free,
      serverGet: free,
      jobSeconds: 0,
    },
  };
  return {
    ...base,
    workload: { ...base.workload, ...changes.workload },
    network: { ...base.network, ...changes.network },
    design: { ...base.design, ...changes.design },
    costs: { ...base.costs, ...changes.costs },
  };
}

const gradients = (setup: Setup, parts: number[]) => simulateGradients(setup, new Fabric(setup), parts, 0);
/** Workers that need no time: what remains is travel. */
const instant = { speed: 1e12 };
/** Without tokens, whose way is not counted. */
const parts = (count: number, tokens = 0) => new Array<number>(count).fill(tokens);
const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

describe("a step with one worker", () => {
  it("takes the sum of its job times", () => {
    const setup = makeSetup(1, { workload: { scorePasses: 2 } });
    const tokens = sum(drawConversations(setup.workload).map((one) => one.tokens));
    const times = simulateStep(setup);
    // Every token is sampled or evaluated once, at the same rate.
    expect(times.rollout).toBeCloseTo(tokens / 100, 6);
    expect(times.score).toBeCloseTo((2 * tokens) / 100, 6);
    expect(times.gradient).toBeCloseTo(tokens / 100, 6);
    expect(times.total).toBeCloseTo(times.rollout + times.score + times.gradient, 6);
  });

  it("takes half as long when the worker is twice as fast", () => {
    const [one, two] = [1, 2].map((speed) => simulateStep(makeSetup(1, { speed })).total);
    expect(two! / one!).toBeCloseTo(0.5, 6);
  });

  it("is as long as the step without a bus when nothing else takes time", () => {
    const setup = makeSetup(1);
    expect(explainStep(setup, simulateStep(makeLocal(setup)).total)).toMatchObject({
      efficiency: expect.closeTo(1, 6),
      travel: 0,
      limit: "workers",
    });
  });
});

describe("audits", () => {
  const run = (workers: number, changes: Changes) => gradients(makeSetup(workers, changes), parts(200, 500));

  it("take the coordinator a share of all work, however many workers do it", () => {
    // 200 jobs of 5 s, of which every twentieth is computed again.
    const workload = { auditShare: 0.05 };
    expect(run(200, { workload })).toBeCloseTo(5 + 10 * 5, 6);
    expect(run(200, {})).toBeCloseTo(5, 6);
    expect(run(200, { workload, design: { auditTime: 2 } })).toBeCloseTo(5 + 2 * 5, 6);
  });
});

describe("rollouts", () => {
  const talk = (wait: number): Conversation => ({
    turns: [
      { evaluated: 0, sampled: 50, wait },
      { evaluated: 0, sampled: 50, wait: 0 },
    ],
    tokens: 100,
  });
  const run = (setup: Setup, conversations: Conversation[]) =>
    simulateRollouts(setup, new Fabric(setup), conversations, new Array<number>(setup.workers).fill(0));

  it("share a worker's speed while they sample, and wait beside each other", () => {
    expect(run(makeSetup(1), [talk(0), talk(0)])).toBeCloseTo(2, 9);
    expect(run(makeSetup(1), [talk(10)])).toBeCloseTo(11, 9);
    // Both sample, both wait, both sample: as long as one of twice the length.
    expect(run(makeSetup(1), [talk(10), talk(10)])).toBeCloseTo(12, 9);
    expect(run(makeSetup(1, { slots: 1 }), [talk(10), talk(10)])).toBeCloseTo(22, 9);
    expect(run(makeSetup(2), [talk(10), talk(10)])).toBeCloseTo(11, 9);
  });

  it("go faster together where the measured rate grows", () => {
    const costs: Changes["costs"] = {
      sampled: [
        [1, 100],
        [3, 300],
      ],
    };
    expect(run(makeSetup(1, { costs }), [talk(0), talk(0), talk(0)])).toBeCloseTo(1, 9);
    expect(run(makeSetup(1, { costs }), [talk(0), talk(0)])).toBeCloseTo(1, 9);
  });
});

describe("the broadcast", () => {
  const last = (setup: Setup) => Math.max(...simulateBroadcast(setup, new Fabric(setup)));

  it("takes the server a copy for each worker, and half as long over twice the bandwidth", () => {
    expect(last(makeSetup(10, { network: { serverRate: 1e6 } }))).toBeCloseTo((10 * BYTES) / 1e6, 6);
    expect(last(makeSetup(10, { network: { serverRate: 2e6 } }))).toBeCloseTo((10 * BYTES) / 2e6, 6);
  });

  it("takes it one for each leaf server, which serve their workers at the same time", () => {
    const setup = makeSetup(12, { network: { serverRate: 1e6 }, design: { workersPerLeaf: 4 } });
    expect(last(setup)).toBeCloseTo(((3 + 4) * BYTES) / 1e6, 6);
  });

  it("crosses a site's line once for each of its workers, or once for its leaf server", () => {
    const network = { sites: 2, lineRate: 1e6 };
    expect(last(makeSetup(10, { network }))).toBeCloseTo((5 * BYTES) / 1e6, 6);
    expect(last(makeSetup(10, { network, design: { workersPerLeaf: 5 } }))).toBeCloseTo(BYTES / 1e6, 6);
  });
});

describe("gradients that the coordinator adds", () => {
  it("take the server's network as long as all of them together", () => {
    const [slow, fast] = [1e6, 2e6].map((serverRate) =>
      gradients(makeSetup(8, { ...instant, network: { serverRate } }), parts(20)),
    );
    expect(slow).toBeCloseTo((20 * BYTES) / 1e6, 6);
    expect(fast).toBeCloseTo(slow! / 2, 6);
  });

  it("take the coordinator's CPU their bytes and their sums", () => {
    const costs = { clientGet: 1e6, addSeconds: 0.5 };
    expect(gradients(makeSetup(8, { ...instant, costs }), parts(20))).toBeCloseTo(20 * (BYTES / 1e6 + 0.5), 6);
  });

  it("wait a round trip for each piece, unless several are in flight", () => {
    const pieces = Math.ceil(BYTES / PIECE_BYTES);
    const take = (piecesInFlight: number) =>
      gradients(makeSetup(1, { ...instant, network: { roundTrip: 1 }, design: { piecesInFlight } }), parts(1));
    expect(take(1) - take(4)).toBeCloseTo(pieces * 0.75, 6);
  });
});

describe("a tree of sums", () => {
  const tree = (workers: number, changes: Changes) =>
    makeSetup(workers, { ...changes, design: { sum: "tree", ...changes.design } });

  it("computes everything once", () => {
    expect(gradients(tree(1, {}), parts(8, 512))).toBeCloseTo((8 * 512) / 100, 6);
    expect(gradients(tree(8, {}), parts(8, 512))).toBeCloseTo(512 / 100, 6);
  });

  it("stores one of two, fetches it, adds, and stores the sum", () => {
    const setup = tree(2, { ...instant, network: { workerRate: 1e6 }, costs: { addSeconds: 0.5 } });
    // The coordinator adds the whole sum to its own.
    expect(gradients(setup, parts(2))).toBeCloseTo((3 * BYTES) / 1e6 + 0.5 + 0.5, 6);
  });

  it("gives the coordinator one gradient, whatever the plan", () => {
    const costs = { clientGet: 1e6 };
    const many = gradients(tree(64, { ...instant, costs }), parts(64));
    // Each of the six levels fetches one gradient, all at once; then the coordinator fetches the root's.
    expect(many).toBeCloseTo((7 * BYTES) / 1e6, 6);
  });

  it("with leaf servers lets only sums of whole leaves through the first one's network", () => {
    const network = { sites: 4, lineRate: 1e6 };
    const near = gradients(tree(16, { ...instant, network, design: { workersPerLeaf: 4 } }), parts(16));
    const far = gradients(tree(16, { ...instant, network }), parts(16));
    expect(near).toBeLessThan(far);
    expect(near).toBeLessThanOrEqual((4 * BYTES) / 1e6 + 1e-6);
  });

  it("is balanced", () => {
    expect(() => gradients(tree(2, {}), parts(3))).toThrow("3 parts");
  });
});

describe("the workload", () => {
  it("is the same for the same seed, has the mean that it should, and a heavy tail", () => {
    const workload = { ...defaultWorkload, prompts: 512, toolTokens: 0, promptTokens: 0 };
    const lengths = drawConversations(workload).map(({ tokens }) => tokens);
    expect(drawConversations(workload).map(({ tokens }) => tokens)).toEqual(lengths);
    expect(sum(lengths) / lengths.length / workload.sampledTokens).toBeCloseTo(1, 1);
    expect(Math.max(...lengths)).toBe(workload.mostSampledTokens);
  });

  it("is neither lost nor doubled by plans and their parts", () => {
    const conversations = drawConversations(defaultWorkload);
    const tokens = sum(conversations.map((one) => one.tokens));
    const plan = planMicroBatches(conversations, 8192);
    expect(sum(plan)).toBeCloseTo(tokens, 4);
    expect(Math.max(...plan)).toBeLessThanOrEqual(8192);
    expect(sum(cutPlan(plan, 16))).toBeCloseTo(tokens, 4);
  });
});

describe("models", () => {
  it("have the weights that are known", () => {
    // What the engine trains with LoRA of rank 16 on all linear layers of this shape.
    expect(countTrained(shapes["0.5B"], "lora")).toBe(8_798_208);
    expect(countTrained(shapes["0.5B"], "full") / 494e6).toBeCloseTo(1, 2);
    expect(countTrained(shapes["4B"], "full") / 4.02e9).toBeCloseTo(1, 2);
    expect(countTrained(shapes["8B"], "full") / 8.19e9).toBeCloseTo(1, 2);
  });
});

describe("the limit", () => {
  const explain = (workers: number, changes: Changes): Explained => {
    const setup = makeSetup(workers, changes);
    return explainStep(setup, simulateStep(makeLocal(setup)).total);
  };

  it.each<[Explained["limit"], Changes]>([
    ["server's network", { network: { serverRate: 1e5 } }],
    ["workers' network", { network: { workerRate: 1e4 } }],
    ["CPU for blobs", { costs: { clientGet: 1e5, clientPut: 1e5 } }],
    ["CPU for sums", { costs: { addSeconds: 100 } }],
    ["audits", { workload: { auditShare: 0.5 } }],
    ["coordinator's jobs", { costs: { jobSeconds: 100 } }],
    ["server's streams", { costs: { serverPut: 1e5 } }],
    ["round trips", { network: { roundTrip: 10 } }],
    ["lines between sites", { network: { sites: 2, lineRate: 1e4 } }],
    ["optimizer", { costs: { stepSeconds: 1e4 } }],
    ["uneven work", { workload: { prompts: 1, spread: 2 } }],
  ])("is %s where that alone is scarce", (limit, changes) => {
    const found = explain(8, changes);
    expect(found.limit).toBe(limit);
    expect(found.efficiency + found.uneven + found.travel).toBeLessThanOrEqual(1 + 1e-9);
  });
});
