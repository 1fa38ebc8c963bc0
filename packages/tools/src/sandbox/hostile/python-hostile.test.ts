import { afterAll, describe, expect, it } from "vitest";
import { PythonSandbox } from "../python-sandbox.js";
import { pythonPrograms } from "./python-programs.mjs";
import { hostileLimits, runBatch, runHostile } from "./run-hostile.mjs";

const pool = new PythonSandbox({ ...hostileLimits.python, workers: 2 });
afterAll(() => pool.dispose());

// scripts/nightly/sandbox.mjs runs the slow programs too, and the batch under the default limits.
describe("hostile programs in Python", () => {
  it("end themselves only, within their limits, and the next program is right", async () => {
    const programs = pythonPrograms.filter(({ isSlow }) => !isSlow);
    expect(programs.length).toBeGreaterThan(60);
    expect(await runHostile(programs, PythonSandbox)).toEqual([]);
  });

  it("64 programs at once, 8 of them endless: 56 right answers and 8 that are stopped", {
    timeout: 120_000,
  }, async () => {
    expect(await runBatch("python", pool)).toMatchObject({ right: 56, stopped: 8, wrong: [] });
  });
});
