/**
 * Steps sampled ahead against taking turns (lag 0), on the calculator of the demo: with a tool whose answers take 0.1 to
 * 2 s, the time until 0.90 of the held-out problems are solved; with an instant one, the time of a run. Afterwards one
 * lag with other delays and numbers of threads: its adapter has the same bits each time. And decoding with two versions
 * of an adapter in one batch, beside one version. `CRIA_ASYNC_SEEDS` (5) and `CRIA_ASYNC_REPEATS` (20) make it shorter.
 */
import type { BenchmarkOptions } from "../benchmark.js";
import { median } from "../measure.js";
import type { Measured, Row } from "../row.js";
import { THREADS } from "../settings.js";
import { measureSeveralVersions } from "./several-versions.js";
import { type AheadRun, trainAhead } from "./train-ahead.js";

const SEEDS = Number(process.env.CRIA_ASYNC_SEEDS ?? 5);
const REPEATS = Number(process.env.CRIA_ASYNC_REPEATS ?? 20);
const LAGS = [0, 1, 2];
const STEPS = 12;
const SOLVED = 0.9;
const SLOW = "calculator, answers after 0.1 to 2 s";
const INSTANT = "calculator, instant answers";
const BITS = "one adapter, whatever ends first";

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  const rows: Row[] = [];
  if (includes(SLOW)) {
    const runs = await trainAll(true, log);
    rows.push(
      compare(SLOW, `seconds until ${SOLVED} of the held-out problems are solved`, runs, findSolved, 0.6),
      compare(SLOW, "seconds of 12 steps", runs, ({ seconds }) => seconds, null),
      compare(SLOW, "success after 12 steps", runs, ({ success }) => success.get(STEPS)!, null),
    );
  }
  if (includes(INSTANT))
    rows.push(compare(INSTANT, "seconds of 12 steps", await trainAll(false, log), ({ seconds }) => seconds, 1.02));
  if (includes(BITS)) rows.push(await countAdapters(log));
  rows.push(...(await measureSeveralVersions(includes, log)));
  return { rows };
}

/** Runs of each lag, one for each seed; lags take turns, each time in another order. */
async function trainAll(isSlow: boolean, log: (text: string) => void): Promise<Map<number, AheadRun[]>> {
  const runs = new Map<number, AheadRun[]>(LAGS.map((lag) => [lag, []]));
  for (let seed = 1; seed <= SEEDS; seed++)
    for (let i = 0; i < LAGS.length; i++) {
      const lag = LAGS[(i + seed) % LAGS.length]!;
      const run = await trainAhead({
        lag,
        seed,
        steps: STEPS,
        isSlow,
        delays: String(seed),
        every: isSlow ? 1 : STEPS,
      });
      runs.get(lag)!.push(run);
      log(`${isSlow ? "slow" : "instant"}, lag ${lag}, seed ${seed}: ${run.seconds.toFixed(1)} s`);
    }
  return runs;
}

/** Seconds until the held-out problems are solved; infinite when they never were. */
function findSolved({ secondsAfter, success }: AheadRun): number {
  const [step] = [...success].find(([, share]) => share >= SOLVED) ?? [];
  return step === undefined ? Number.POSITIVE_INFINITY : secondsAfter.get(step)!;
}

function compare(
  title: string,
  metric: string,
  runs: ReadonlyMap<number, readonly AheadRun[]>,
  pick: (run: AheadRun) => number,
  most: number | null,
): Row {
  const of = (lag: number) => median(runs.get(lag)!.map(pick));
  const ratio = median(runs.get(1)!.map((run, i) => pick(run) / pick(runs.get(0)![i]!)));
  return {
    case: title,
    metric,
    ours: of(1),
    peers: { "lag 0": of(0), "lag 2": of(2) },
    target:
      most === null
        ? null
        : `lag 1 takes at most ${most} of lag 0's (median of the seeds' ratios: ${ratio.toFixed(2)})`,
    met: most === null ? null : ratio <= most,
  };
}

/** How many different adapters come of runs with other delays and threads. */
async function countAdapters(log: (text: string) => void): Promise<Row> {
  const digests = new Set<string>();
  for (let i = 0; i < REPEATS; i++) {
    const threads = 1 + (i % THREADS);
    const { sha256 } = await trainAhead({
      lag: 2,
      seed: 1,
      steps: 4,
      isSlow: true,
      delays: `other ${i}`,
      threads,
      every: 4,
    });
    digests.add(sha256);
    log(`delays ${i}, ${threads} threads: ${sha256}`);
  }
  return {
    case: BITS,
    metric: `different adapters of ${REPEATS} runs with other delays and threads`,
    ours: digests.size,
    peers: {},
    target: "1",
    met: digests.size === 1,
  };
}
