import { afterAll, describe, expect, it } from "vitest";
import { JavaScriptSandbox } from "../javascript-sandbox.js";
import { javascriptPrograms } from "./javascript-programs.mjs";
import { hostileLimits, runBatch, runHostile } from "./run-hostile.mjs";

const pool = new JavaScriptSandbox({ ...hostileLimits.javascript, workers: 2 });
afterAll(() => pool.dispose());

// scripts/nightly/sandbox.mjs runs the slow programs too, and the batch under the default limits.
describe("hostile programs in JavaScript", () => {
  it("end themselves only, within their limits, and the next program is right", async () => {
    const programs = javascriptPrograms.filter(({ isSlow }) => !isSlow);
    expect(programs.length).toBeGreaterThan(60);
    expect(await runHostile(programs, JavaScriptSandbox)).toEqual([]);
  });

  it("64 programs at once, 8 of them endless: 56 right answers and 8 that are stopped", {
    timeout: 120_000,
  }, async () => {
    expect(await runBatch("javascript", pool)).toMatchObject({ right: 56, stopped: 8, wrong: [] });
  });
});
