import { amount, someOf } from "@cria/core/testing";
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
    expect(await runHostile(someOf(programs), JavaScriptSandbox)).toEqual([]);
  });

  it("an eighth of the programs that run at once is endless: these are stopped, the others are right", {
    timeout: 120_000,
  }, async () => {
    const eighths = amount(2, 8);
    const result = await runBatch("javascript", pool, 8 * eighths);
    expect(result).toMatchObject({ right: 7 * eighths, stopped: eighths, wrong: [] });
  });
});
