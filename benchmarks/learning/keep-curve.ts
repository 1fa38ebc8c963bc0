import { createHash } from "node:crypto";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cached, cacheFolder } from "../cache.js";
import { describeCommit } from "../report.js";
import type { Curve } from "./curve.js";
import type { LearningTask, LearnOptions } from "./tasks/learning-task.js";

/**
 * `task.learn`, whose result is kept for the commit, so that a benchmark that ended early goes on where it was: all
 * methods and seeds of a task take hours. A changed tree keeps nothing.
 * @param method what distinguishes the run from others of this task and seed; overrides also name temporary files.
 */
export async function keepCurve(
  task: Pick<LearningTask, "name" | "learn">,
  method: readonly string[],
  options: LearnOptions,
  commit = describeCommit(),
): Promise<Curve> {
  if (commit.endsWith("+changes") || commit === "unknown") return task.learn(options);
  const { seed, tokens, steps, every, adapter } = options;
  const told = JSON.stringify([task.name, method, seed, tokens, steps, every]);
  const place = join("learning", commit, createHash("sha256").update(told).digest("hex").slice(0, 16));
  const file = await cached(`${place}.json`, async (temporary) => {
    const curve = await task.learn(options);
    if (adapter) await cached(`${place}.gguf`, (copy) => copyFileSync(adapter, copy));
    writeFileSync(temporary, JSON.stringify(curve));
  });
  if (adapter) copyFileSync(join(cacheFolder, `${place}.gguf`), adapter);
  return JSON.parse(readFileSync(file, "utf8")) as Curve;
}
