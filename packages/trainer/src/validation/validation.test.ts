import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Trajectory } from "@cria/core";
import { describe, expect, it } from "vitest";
import { describeSamples } from "./describe-samples.js";
import { NumpyRandom } from "./numpy-random.js";
import { makeValidationMetrics } from "./validation-metrics.js";

interface Reference {
  draws_of_5: number[];
  cases: { n: number; rows: { uid: string; value: number; pred?: string }[]; expected: Record<string, number> }[];
}

// Values made by make_reference.py in the same folder, with numpy.
const fixture = join(import.meta.dirname, "..", "..", "fixtures", "validation", "reference.json");
const reference = JSON.parse(readFileSync(fixture, "utf8")) as Reference;

function makeTrajectory(
  uid: string,
  reward: number,
  extraFields: Record<string, unknown>,
  dataSource = "s",
): Trajectory {
  return { uid, dataSource, reward, extraFields } as unknown as Trajectory;
}

describe("the bootstrap", () => {
  it("draws as numpy does", () => {
    expect([...new NumpyRandom(42).choice(5, 700)]).toEqual(reference.draws_of_5);
    expect([...new NumpyRandom(1).choice(1, 3)]).toEqual([0, 0, 0]);
  });

  it.each(reference.cases.map((c) => [c.n, c] as const))(
    "%i samples a prompt: numpy's values",
    (n, { rows, expected }) => {
      const prompts = [...new Set(rows.map((row) => row.uid))].map((uid) => {
        const own = rows.filter((row) => row.uid === uid);
        expect(own).toHaveLength(n);
        return {
          n,
          values: own.map((row) => row.value),
          predictions: own[0]!.pred === undefined ? null : own.map((row) => row.pred),
        };
      });
      const described = describeSamples(prompts);
      expect(Object.keys(described).sort()).toEqual(Object.keys(expected).sort());
      for (const [name, value] of Object.entries(expected)) expect(described[name], name).toBeCloseTo(value, 10);
    },
  );

  it("best is at least the mean, worst at most, and both tighten with equal values", () => {
    const spread = describeSamples([{ n: 4, values: [0, 1, 1, 0], predictions: ["a", "b", "b", "c"] }]);
    expect(spread["best@4/mean"]).toBeGreaterThan(spread["mean@4"]!);
    expect(spread["worst@4/mean"]).toBeLessThan(spread["mean@4"]!);
    expect(spread["maj@4/mean"]).toBeGreaterThan(spread["mean@4"]!);
    const equal = describeSamples([{ n: 4, values: [3, 3, 3, 3], predictions: null }]);
    expect([equal["best@4/mean"], equal["worst@2/mean"], equal["std@4"]]).toEqual([3, 3, 0]);
  });
});

describe("validation metrics", () => {
  it("have their exact names: values judged at N are core, the rest auxiliary", () => {
    const metrics = makeValidationMetrics(
      ["0", "1"].flatMap((uid) =>
        [0, 1, 2, 3].map((i) => makeTrajectory(uid, i, { acc: i > 1, pred: `${i}`, note: "x" }, "math")),
      ),
    );
    expect(Object.keys(metrics).filter((name) => name.startsWith("val-core"))).toEqual([
      "val-core/math/failed_ratio",
      "val-core/math/acc/mean@4",
      "val-core/math/acc/best@4/mean",
      "val-core/math/acc/worst@4/mean",
      "val-core/math/acc/maj@4/mean",
    ]);
    expect(metrics["val-core/math/acc/mean@4"]).toBe(0.5);
    expect(metrics["val-aux/math/reward/mean@4"]).toBe(1.5);
    expect(metrics["val-aux/math/acc/best@2/mean"]).toBeGreaterThan(0.5);
    expect(Object.keys(metrics).join()).not.toMatch(/note|pred/);
  });

  it("without acc the reward is judged; without pred there is no vote; sources stay apart", () => {
    const metrics = makeValidationMetrics([
      makeTrajectory("0", 1, {}, "a"),
      makeTrajectory("0", 0, {}, "a"),
      makeTrajectory("0", 7, { acc: true }, "b"),
    ]);
    expect(Object.keys(metrics).filter((name) => name.startsWith("val-core"))).toEqual([
      "val-core/a/failed_ratio",
      "val-core/a/reward/mean@2",
      "val-core/a/reward/best@2/mean",
      "val-core/a/reward/worst@2/mean",
      "val-core/b/failed_ratio",
      "val-core/b/acc/mean@1",
    ]);
    expect(metrics["val-core/a/reward/mean@2"]).toBe(0.5);
  });

  it("ragged extras count the prompts that have them", () => {
    const metrics = makeValidationMetrics([
      makeTrajectory("0", 1, { depth: 4 }),
      makeTrajectory("1", 1, {}),
      makeTrajectory("2", 1, { depth: 6 }),
    ]);
    expect(metrics["val-aux/s/depth/mean@1"]).toBe(5);
  });

  it("leave out failed conversations, and have their share under the names of all samples", () => {
    const failed = (uid: string, dataSource: string) => ({ ...makeTrajectory(uid, 0, {}, dataSource), error: "503" });
    const metrics = makeValidationMetrics([
      ...[1, 1, 1].map((reward) => makeTrajectory("0", reward, { acc: 1 }, "a")),
      failed("0", "a"),
      ...[0, 0, 0, 0].map((reward) => makeTrajectory("1", reward, { acc: 0 }, "a")),
      ...[0, 1, 2, 3].map(() => failed("2", "a")),
      failed("0", "b"),
    ]);
    expect(metrics["val-core/a/failed_ratio"]).toBeCloseTo(5 / 12, 12);
    for (const name of ["mean@4", "best@4/mean", "worst@4/mean"]) expect(metrics[`val-core/a/acc/${name}`]).toBe(0.5);
    expect(Object.keys(metrics).filter((name) => name.includes("@3"))).toEqual([]);
    expect(Object.entries(metrics).filter(([name]) => name.includes("/b/"))).toEqual([["val-core/b/failed_ratio", 1]]);
  });
});
