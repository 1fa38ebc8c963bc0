/**
 * Stability of training: each algorithm trains the embedded policy in the calculator environment, with the same budget
 * of steps and rollouts, from three seeds. Runs are independent, so each core trains one on a single thread.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchmarkOptions } from "../benchmark.js";
import { algorithms, seeds } from "./algorithms.js";
import { type CurveRow, LEAST } from "./present.js";
import { type TrainingCurves, trainOnce } from "./train-once.js";

export async function run({ includes, log }: BenchmarkOptions): Promise<{ rows: CurveRow[] }> {
  const folder = mkdtempSync(join(tmpdir(), "cria-algorithms-"));
  const jobs = Object.keys(algorithms)
    .flatMap((name) => seeds.map((seed) => ({ name, seed, title: `${name}, seed ${seed}` })))
    .filter(({ title }) => includes(title));
  const rows = new Map<string, CurveRow>();
  const queue = [...jobs];
  const work = async () => {
    for (let job = queue.shift(); job; job = queue.shift()) {
      const curves = await trainOnce(job.name, job.seed, algorithms[job.name]!, folder);
      rows.set(job.title, makeRow(job.title, curves));
      log(
        `${rows.size} of ${jobs.length}: ${job.title}: ${rows.get(job.title)!.ours.toFixed(3)} in ${curves.seconds.toFixed(0)} s`,
      );
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(jobs.length, availableParallelism()) }, work));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return { rows: jobs.map(({ title }) => rows.get(title)!) };
}

function makeRow(title: string, curves: TrainingCurves): CurveRow {
  const [before, after] = [curves.heldOut[0]!, curves.heldOut.at(-1)!];
  return {
    case: title,
    metric: `sampled held-out success after ${after.step} steps`,
    ours: after.success,
    peers: { "before training": before.success },
    target: `at least ${LEAST}`,
    met: after.success >= LEAST,
    curves,
  };
}
