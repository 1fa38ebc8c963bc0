/**
 * Stability of training: each algorithm trains the embedded policy in the calculator environment, with the same budget of
 * steps and rollouts, from three seeds. Runs are independent, so each core trains one on a single thread.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchmarkOptions } from "../benchmark.js";
import type { Report } from "../report.js";
import type { Row } from "../row.js";
import { algorithms, seeds } from "./algorithms.js";
import { drawPanels } from "./draw-panels.js";
import { type TrainingCurves, trainOnce } from "./train-once.js";

const LEAST = 0.85;

interface CurveRow extends Row {
  curves: TrainingCurves;
}

export async function run({ includes, log }: BenchmarkOptions): Promise<CurveRow[]> {
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
  return jobs.map(({ title }) => rows.get(title)!);
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

/** A panel for each algorithm, a line for each seed. */
export function drawFigure({ rows }: Report<CurveRow>): string {
  const panels = Object.keys(algorithms).map((name) => ({
    title: name,
    lines: rows.filter((row) => row.case.startsWith(`${name}, `)).map(({ curves }) => curves),
  }));
  return drawPanels(panels, LEAST);
}

/** A line for each algorithm, a column for each seed. */
export function formatTable({ rows }: Report<CurveRow>): string {
  const lines = Object.entries(algorithms).map(([name, overrides]) => {
    const runs = rows.filter((row) => row.case.startsWith(`${name}, `));
    const reached = runs.map((row) => (row.met ? row.ours.toFixed(3) : `**${row.ours.toFixed(3)}**`));
    const settings = overrides.map((text) => `\`${text.replace(/^.*\.(?=\w+=)/, "")}\``);
    return `| ${[name, settings.join(" "), ...reached, ...addSpread(runs)].join(" | ")} |`;
  });
  const head = ["algorithm", "settings", ...seeds.map((seed) => `seed ${seed}`), "mean", "steps to 0.85", "seconds"];
  return [`| ${head.join(" | ")} |`, `|${"---|".repeat(head.length)}`, ...lines].join("\n");
}

/** Mean success; the latest step at which a seed was first measured above the target; mean seconds of a run. */
function addSpread(runs: readonly CurveRow[]): string[] {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const first = runs.map(
    ({ curves }) => curves.heldOut.find((p) => p.success >= LEAST)?.step ?? Number.POSITIVE_INFINITY,
  );
  return [
    mean(runs.map((row) => row.ours)).toFixed(3),
    first.map((step) => (Number.isFinite(step) ? step : "never")).join(", "),
    mean(runs.map(({ curves }) => curves.seconds)).toFixed(0),
  ];
}
