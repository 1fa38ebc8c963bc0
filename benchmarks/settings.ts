/** Each side runs in its better setting: all are tried once, those that are close to the best are measured. */
import { availableParallelism } from "node:os";
import { countCores } from "./machine.js";
import { median } from "./measure.js";
import type { UsedSetting } from "./row.js";

export interface Setting {
  flashAttention: boolean;
  threads: number;
}

/** Threads of all contenders at most. */
export const THREADS = Number(process.env.CRIA_BENCHMARK_THREADS ?? availableParallelism());

/**
 * With and without flash attention; with all threads, and with one for each core where two share one. `small` models
 * are tried with a single thread too: two may wait for each other longer than they work.
 */
export function listSettings(small: boolean, threads = THREADS, cores = countCores()): Setting[] {
  const numbers = new Set([threads, Math.min(threads, cores), ...(small ? [1] : [])]);
  return [true, false].flatMap((flashAttention) => [...numbers].map((count) => ({ flashAttention, threads: count })));
}

export function nameSetting({ flashAttention, threads }: Setting): string {
  return `flash attention ${flashAttention ? "on" : "off"}, ${threads} ${threads === 1 ? "thread" : "threads"}`;
}

/** One side in one setting. */
export interface Contender<K> {
  /** "ours" or a peer. */
  side: string;
  setting: string;
  /** One run of each case, a shorter one in a trial. Returns a figure for each: more is better. */
  run(cases: readonly K[], isTrial: boolean): Promise<Map<K, number>>;
  /** Called when none of its cases will be measured again. */
  dispose(): Promise<void>;
}

export interface Best extends UsedSetting {
  median: number;
}

export interface MeasureBestOptions {
  rounds?: number;
  /** Trials of candidates for the best; more than one where a run takes milliseconds. Default 1. */
  trials?: number;
  /** Settings that have less of their side's best in the trial are not measured. Default 0.8, for short trials. */
  close?: number;
  log(text: string): void;
}

/** Settings that have less of their side's best in the first trial are not tried again. */
const PROMISING = 0.5;

type Trials<K> = Map<Contender<K>, Map<K, number>>;

/**
 * Tries every contender on every case, then measures in turn those that are close to their side's best, case by case.
 * Returns the best median of each side and case.
 */
export async function measureBest<K>(
  contenders: readonly Contender<K>[],
  cases: readonly K[],
  { rounds = 5, trials: trialCount = 1, close = 0.8, log }: MeasureBestOptions,
): Promise<Map<string, Map<K, Best>>> {
  const trials: Trials<K> = new Map(contenders.map((contender) => [contender, new Map()]));
  for (let trial = 0; trial < trialCount; trial++) {
    const promising = trial === 0 ? null : chooseClose(contenders, cases, trials, PROMISING);
    for (const contender of contenders) {
      const itsCases = promising ? (promising.get(contender) ?? []) : cases;
      if (itsCases.length === 0) continue;
      const figures = await contender.run(itsCases, true);
      for (const [one, figure] of figures)
        trials.get(contender)!.set(one, Math.max(figure, trials.get(contender)!.get(one) ?? 0));
      log(`tried ${contender.side}, ${contender.setting}: ${[...figures.values()].map(Math.round)}`);
    }
  }
  const kept = chooseClose(contenders, cases, trials, close);
  const values = new Map<Contender<K>, Map<K, number[]>>();
  for (const contender of contenders) {
    const itsCases = kept.get(contender) ?? [];
    values.set(contender, new Map(itsCases.map((one) => [one, []])));
    if (itsCases.length === 0) await contender.dispose();
  }
  const measured = contenders.filter((contender) => kept.has(contender));
  for (let round = 0; round < rounds; round++)
    // Another order each round.
    for (let i = 0; i < measured.length; i++) {
      const contender = measured[(i + round) % measured.length]!;
      const figures = await contender.run(kept.get(contender)!, false);
      for (const [one, figure] of figures) values.get(contender)!.get(one)!.push(figure);
    }
  for (const contender of measured) await contender.dispose();
  return takeBest(contenders, cases, trials, values);
}

/** The cases in which each contender has at least `share` of its side's best. */
export function chooseClose<K>(
  contenders: readonly Contender<K>[],
  cases: readonly K[],
  trials: ReadonlyMap<Contender<K>, ReadonlyMap<K, number>>,
  share: number,
): Map<Contender<K>, K[]> {
  const chosen = new Map<Contender<K>, K[]>();
  for (const one of cases)
    for (const side of new Set(contenders.map((contender) => contender.side))) {
      const group = contenders.filter((contender) => contender.side === side);
      const best = Math.max(...group.map((contender) => trials.get(contender)!.get(one)!));
      for (const contender of group)
        if (trials.get(contender)!.get(one)! >= share * best)
          chosen.set(contender, [...(chosen.get(contender) ?? []), one]);
    }
  return chosen;
}

function takeBest<K>(
  contenders: readonly Contender<K>[],
  cases: readonly K[],
  trials: ReadonlyMap<Contender<K>, ReadonlyMap<K, number>>,
  values: ReadonlyMap<Contender<K>, ReadonlyMap<K, readonly number[]>>,
): Map<string, Map<K, Best>> {
  const result = new Map<string, Map<K, Best>>();
  for (const side of new Set(contenders.map((contender) => contender.side))) {
    const group = contenders.filter((contender) => contender.side === side);
    const bests = cases.map((one): [K, Best] => {
      const medians = group
        .filter((contender) => values.get(contender)!.has(one))
        .map((contender) => ({ used: contender.setting, median: median(values.get(contender)!.get(one)!) }));
      const best = medians.reduce((a, b) => (b.median > a.median ? b : a));
      const tried = Object.fromEntries(group.map((contender) => [contender.setting, trials.get(contender)!.get(one)!]));
      return [one, { ...best, tried }];
    });
    result.set(side, new Map(bests));
  }
  return result;
}
