import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { cacheFolder } from "../cache.js";
import { keepCurve } from "./keep-curve.js";
import type { LearnOptions } from "./tasks/learning-task.js";

const folder = mkdtempSync(join(tmpdir(), "cria-curves-"));
// Commits that no repository has: the folder of the cache is the real one.
const [commit, next] = [randomUUID(), randomUUID()];
afterAll(() => {
  for (const made of [commit, next]) rmSync(join(cacheFolder, "learning", made), { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});

const options = { folder, seed: 1, tokens: 10, steps: 2, every: 5, overrides: [] };
const makeTask = () => {
  const learn = vi.fn(async ({ seed, adapter }: LearnOptions) => {
    if (adapter) writeFileSync(adapter, `trained by ${seed}`);
    return [{ tokens: 0, success: seed / 10 }];
  });
  return { name: "a task", learn };
};

describe("a run of a benchmark that ended early", () => {
  it("is kept for its commit, task, method and seed", async () => {
    const task = makeTask();
    const curve = await keepCurve(task, ["a"], options, commit);
    expect(await keepCurve(task, ["a"], options, commit)).toEqual(curve);
    expect(task.learn).toHaveBeenCalledTimes(1);
    const others = [
      keepCurve(task, ["b"], options, commit),
      keepCurve(task, ["a"], { ...options, seed: 2 }, commit),
      keepCurve(task, ["a"], { ...options, tokens: 20 }, commit),
      keepCurve({ ...task, name: "another" }, ["a"], options, commit),
      keepCurve(task, ["a"], options, next),
    ];
    await Promise.all(others);
    expect(task.learn).toHaveBeenCalledTimes(6);
  });

  it("has the adapter that it made", async () => {
    const task = makeTask();
    const adapters = ["one.gguf", "two.gguf"].map((name) => join(folder, name));
    for (const adapter of adapters) await keepCurve(task, ["teacher"], { ...options, seed: 3, adapter }, commit);
    expect(task.learn).toHaveBeenCalledTimes(1);
    for (const adapter of adapters) expect(readFileSync(adapter, "utf8")).toBe("trained by 3");
  });

  it.each(["c0ffee+changes", "unknown"])("is not kept for the code of %s", async (changed) => {
    const task = makeTask();
    for (let i = 0; i < 2; i++) await keepCurve(task, ["a"], options, changed);
    expect(task.learn).toHaveBeenCalledTimes(2);
  });
});
