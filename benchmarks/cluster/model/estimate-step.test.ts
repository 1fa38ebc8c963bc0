import { describe, expect, it } from "vitest";
import { readResults } from "../../pages/results.js";
import { inputMetrics, type MeasuredInputs, toInputs } from "../inputs.js";
import { estimateStep, findLimit, type StepSetup, WEIGHT_BYTES, workload } from "./estimate-step.js";
import { countTrained, shapes } from "./shapes.js";

const free = Number.POSITIVE_INFINITY;
const weights = countTrained(shapes["0.5B"], "lora");
const bytes = weights * WEIGHT_BYTES;
const tokens = workload.conversations * (workload.sampledTokens + workload.givenTokens);

/** Nothing takes time but jobs: 100 tokens a second of each kind. */
function makeInputs(changes: Partial<MeasuredInputs> = {}): MeasuredInputs {
  const none = Object.fromEntries(Object.keys(inputMetrics).map((name) => [name, 0])) as MeasuredInputs;
  return { ...none, sampled32: 100, scored: 100, trained: 100, readWeights: free, writeWeights: free, ...changes };
}

function makeSetup(changes: Partial<StepSetup> = {}): StepSetup {
  const one = { shape: shapes["0.5B"], training: "lora" as const, workers: 1, speed: 1 };
  return { ...one, microBatchTokens: tokens / 1024, gbitPerSecond: free, ...changes };
}

/** Workers that need no time: only travel remains. */
const instant = { speed: 1e12 };

describe("a step's estimate", () => {
  it("is that of one process without transfers, divided by the number of workers", () => {
    for (const workers of [1, 4, 64]) {
      const step = estimateStep(makeSetup({ workers }), makeInputs());
      expect(step.speedup).toBeCloseTo(workers, 6);
      expect(findLimit(step)).toBe("jobs");
    }
  });

  it("has one sum after another: more workers do not help", () => {
    const inputs = makeInputs({ add: 5, clientGet: 2 });
    for (const workers of [1, 64]) {
      const { seconds } = estimateStep(makeSetup({ ...instant, workers }), inputs);
      expect(seconds.sums).toBeCloseTo(1024 * (weights * 5 + bytes * 2) * 1e-9, 6);
    }
    const larger = estimateStep(makeSetup({ ...instant, microBatchTokens: tokens / 64 }), inputs);
    expect(larger.seconds.sums).toBeCloseTo(64 * (weights * 5 + bytes * 2) * 1e-9, 6);
  });

  it("has weights for each worker and gradients of all on the server's wire", () => {
    const step = estimateStep(makeSetup({ ...instant, workers: 4, gbitPerSecond: 8 }), makeInputs());
    expect(step.seconds.wire).toBeCloseTo(((4 + 1024) * bytes) / 1e9, 6);
    expect(findLimit(step)).toBe("wire");
  });

  it("is no faster than the coordinator's audits, which are a share of all jobs", () => {
    const step = estimateStep(makeSetup({ workers: 1024, microBatchTokens: 512 }), makeInputs());
    expect(step.speedup).toBeCloseTo(1 / workload.auditShare, 6);
    expect(findLimit(step)).toBe("audits");
  });

  it("waits for the last gradient if there are fewer than workers", () => {
    const [one, two, four] = [1, 2, 4].map((gradients) => {
      const setup = makeSetup({ workers: 64, microBatchTokens: tokens / gradients });
      return estimateStep(setup, makeInputs()).seconds.jobs!;
    });
    expect(one! - two!).toBeCloseTo(2 * (two! - four!), 6);
    expect(two! - four!).toBeGreaterThan(0);
  });

  it("is never faster than its workers, for all kept results", () => {
    const reports = [...readResults().values()].flat().filter(({ name }) => name === "cluster");
    expect(reports.length).toBeGreaterThan(0);
    for (const { rows } of reports)
      for (const shape of Object.values(shapes))
        for (const workers of [1, 16, 1000]) {
          const setup = makeSetup({ shape, workers, microBatchTokens: 8192, gbitPerSecond: 25 });
          expect(estimateStep(setup, toInputs(rows)).speedup).toBeLessThan(workers);
        }
  });
});

it("models have as many weights as their configurations say", () => {
  expect(countTrained(shapes["0.5B"], "lora")).toBe(8_798_208);
  expect(countTrained(shapes["0.5B"], "full") / 494e6).toBeCloseTo(1, 2);
  expect(countTrained(shapes["4B"], "full") / 4.02e9).toBeCloseTo(1, 2);
  expect(countTrained(shapes["8B"], "full") / 8.19e9).toBeCloseTo(1, 2);
});
