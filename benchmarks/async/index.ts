/**
 * Steps sampled ahead against taking turns (lag 0), on the calculator of the demo: with a tool whose answers take 0.1 to
 * 2 s, the time until 0.90 of the held-out problems are solved; with an instant one, the time of a run. Afterwards one
 * lag with other delays and numbers of threads: its adapter has the same bits each time. And decoding with two versions
 * of an adapter in one batch, beside one version. Each lag has the number of slots that is the fastest in a short trial.
 * `CRIA_ASYNC_SEEDS` (5), `CRIA_ASYNC_REPEATS` (20), `CRIA_ASYNC_STEPS` (12) and `CRIA_ASYNC_SLOTS` ("64,128,256"; one
 * number: no trial) make it shorter.
 */
import type { BenchmarkOptions } from "../benchmark.js";
import { median } from "../measure.js";
import type { Measured, Row, UsedSetting } from "../row.js";
import { THREADS } from "../settings.js";
import { measureSeveralVersions } from "./several-versions.js";
import { type AheadRun, CONVERSATIONS, trainAhead } from "./train-ahead.js";

const SEEDS = Number(process.env.CRIA_ASYNC_SEEDS ?? 5);
const REPEATS = Number(process.env.CRIA_ASYNC_REPEATS ?? 20);
const LAGS = [0, 1, 2];
const STEPS = Number(process.env.CRIA_ASYNC_STEPS ?? 12);
/** Numbers of slots to try: for half a step's conversations, for all, and for two steps'. */
const SLOTS = (process.env.CRIA_ASYNC_SLOTS ?? "64,128,256").split(",").map(Number);
/** Steps of a trial. */
const TRIAL_STEPS = Math.min(4, STEPS);
const SOLVED = 0.9;
const SLOW = "calculator, answers after 0.1 to 2 s";
const INSTANT = "calculator, instant answers";
const BITS = "one adapter, whatever ends first";

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  const rows: Row[] = [];
  if (includes(SLOW)) {
    const trained = await trainAll(true, log);
    rows.push(
      compare(SLOW, `seconds until ${SOLVED} of the held-out problems are solved`, trained, findSolved, 0.6),
      compare(SLOW, `seconds of ${STEPS} steps`, trained, ({ seconds }) => seconds, null),
      compare(SLOW, `success after ${STEPS} steps`, trained, ({ success }) => success.get(STEPS)!, null),
    );
  }
  if (includes(INSTANT)) {
    const trained = await trainAll(false, log);
    rows.push(compare(INSTANT, `seconds of ${STEPS} steps`, trained, ({ seconds }) => seconds, 1.02));
  }
  if (includes(BITS)) rows.push(await countAdapters(log));
  rows.push(...(await measureSeveralVersions(includes, log)));
  return { rows };
}

/** All runs of one kind of tools. */
interface Trained {
  /** By lag, one for each seed. */
  runs: ReadonlyMap<number, readonly AheadRun[]>;
  /** By lag: the number of slots. */
  settings: ReadonlyMap<number, UsedSetting>;
}

const nameSlots = (slots: number) => `${slots} slots`;

/**
 * Finds the number of slots with which a lag's run of a few steps is the fastest. More slots than conversations under way
 * would stay empty.
 */
async function chooseSlots(lag: number, isSlow: boolean, log: (text: string) => void) {
  const useful = SLOTS.filter((slots) => slots <= CONVERSATIONS * (lag + 1));
  const candidates = useful.length > 0 ? useful : [Math.min(...SLOTS)];
  const tried: Record<string, number> = {};
  let [best] = candidates as [number];
  if (candidates.length > 1)
    for (const slots of candidates) {
      const trial = { lag, slots, seed: 1, steps: TRIAL_STEPS, isSlow, every: TRIAL_STEPS };
      const { seconds } = await trainAhead(trial);
      tried[nameSlots(slots)] = seconds;
      if (seconds < tried[nameSlots(best)]!) best = slots;
      log(`tried ${isSlow ? "slow" : "instant"}, lag ${lag}, ${nameSlots(slots)}: ${seconds.toFixed(1)} s`);
    }
  return { slots: best, setting: { used: nameSlots(best), tried } satisfies UsedSetting };
}

/** Runs of each lag, one for each seed; lags take turns, each time in another order. */
async function trainAll(isSlow: boolean, log: (text: string) => void): Promise<Trained> {
  const chosen = new Map<number, Awaited<ReturnType<typeof chooseSlots>>>();
  for (const lag of LAGS) chosen.set(lag, await chooseSlots(lag, isSlow, log));
  const runs = new Map<number, AheadRun[]>(LAGS.map((lag) => [lag, []]));
  for (let seed = 1; seed <= SEEDS; seed++)
    for (let i = 0; i < LAGS.length; i++) {
      const lag = LAGS[(i + seed) % LAGS.length]!;
      const run = await trainAhead({
        lag,
        slots: chosen.get(lag)!.slots,
        seed,
        steps: STEPS,
        isSlow,
        delays: String(seed),
        every: isSlow ? 1 : STEPS,
      });
      runs.get(lag)!.push(run);
      log(`${isSlow ? "slow" : "instant"}, lag ${lag}, seed ${seed}: ${run.seconds.toFixed(1)} s`);
    }
  return { runs, settings: new Map(LAGS.map((lag) => [lag, chosen.get(lag)!.setting])) };
}

/** Seconds until the held-out problems are solved; infinite when they never were. */
function findSolved({ secondsAfter, success }: AheadRun): number {
  const [step] = [...success].find(([, share]) => share >= SOLVED) ?? [];
  return step === undefined ? Number.POSITIVE_INFINITY : secondsAfter.get(step)!;
}

function compare(
  title: string,
  metric: string,
  { runs, settings }: Trained,
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
    settings: { ours: settings.get(1)!, "lag 0": settings.get(0)!, "lag 2": settings.get(2)! },
    target:
      most === null
        ? null
        : `lag 1 takes at most ${most} of lag 0's (median of the seeds' ratios: ${ratio.toFixed(2)})`,
    met: most === null ? null : ratio <= most,
  };
}

/** Counts the different adapters of runs with other delays and threads. */
async function countAdapters(log: (text: string) => void): Promise<Row> {
  const digests = new Set<string>();
  for (let i = 0; i < REPEATS; i++) {
    const threads = 1 + (i % THREADS);
    const { sha256 } = await trainAhead({
      lag: 2,
      slots: Math.max(...SLOTS),
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
    digests: [...digests].sort(),
    target: "1",
    met: digests.size === 1,
  };
}
