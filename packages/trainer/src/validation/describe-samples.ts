import { NumpyRandom } from "./numpy-random.js";

const RESAMPLES = 1000;
const SEED = 42;

/** Samples of one prompt. */
export interface PromptSamples {
  /** Number of samples requested; some may have failed. */
  n: number;
  values: readonly number[];
  /** Prediction of each sample, for the majority vote; null if samples have none. */
  predictions: readonly unknown[] | null;
}

/**
 * Statistics of prompts, each averaged over the prompts that have it. They are `mean@n`, `std@n`, and for k = 2, 4, 8,
 * ... and n `best@k`, `worst@k` and (with predictions) `maj@k`, each `/mean` and `/std` over 1000 resamples of k values
 * with replacement. n is the number of samples requested; a prompt with failed samples has fewer values. `maj@k` is the
 * value of the first sample with the most frequent prediction; of equally frequent ones, the first.
 */
export function describeSamples(prompts: readonly PromptSamples[]): Record<string, number> {
  const sums = new Map<string, { sum: number; count: number }>();
  const resamples = new Resamples();
  for (const prompt of prompts) {
    for (const [name, value] of Object.entries(describePrompt(prompt, resamples))) {
      const entry = sums.get(name) ?? { sum: 0, count: 0 };
      entry.sum += value;
      entry.count++;
      sums.set(name, entry);
    }
  }
  return Object.fromEntries([...sums].map(([name, { sum, count }]) => [name, sum / count]));
}

function describePrompt({ n, values, predictions }: PromptSamples, resamples: Resamples): Record<string, number> {
  const { mean, std } = summarize(values);
  const result: Record<string, number> = { [`mean@${n}`]: mean };
  if (n === 1) return result;
  result[`std@${n}`] = std;
  const add = (name: string, outcomes: readonly number[]) => {
    const summary = summarize(outcomes);
    result[`${name}/mean`] = summary.mean;
    result[`${name}/std`] = summary.std;
  };
  for (const k of listSizes(n)) {
    const draws = resamples.get(values.length, k);
    const reduce = (f: (picked: Int32Array) => number) => draws.map(f);
    add(
      `best@${k}`,
      reduce((picked) => picked.reduce((best, i) => Math.max(best, values[i]!), Number.NEGATIVE_INFINITY)),
    );
    add(
      `worst@${k}`,
      reduce((picked) => picked.reduce((worst, i) => Math.min(worst, values[i]!), Number.POSITIVE_INFINITY)),
    );
    if (predictions)
      add(
        `maj@${k}`,
        reduce((picked) => values[findMajority(picked, predictions)]!),
      );
  }
  return result;
}

/** Powers of two below n, then n. */
function listSizes(n: number): number[] {
  const sizes: number[] = [];
  for (let k = 2; k < n; k *= 2) sizes.push(k);
  return [...sizes, n];
}

/** Finds the first picked sample with the most frequent prediction. */
function findMajority(picked: Int32Array, predictions: readonly unknown[]): number {
  const votes = new Map<unknown, { count: number; first: number }>();
  for (const i of picked) {
    const vote = votes.get(predictions[i]);
    if (vote) vote.count++;
    else votes.set(predictions[i], { count: 1, first: i });
  }
  let winner = { count: 0, first: -1 };
  for (const vote of votes.values()) if (vote.count > winner.count) winner = vote;
  return winner.first;
}

/** The generator restarts for every prompt and size, so equal shapes share their draws. */
class Resamples {
  private readonly known = new Map<string, Int32Array[]>();

  get(n: number, k: number): Int32Array[] {
    const key = `${n},${k}`;
    let draws = this.known.get(key);
    if (!draws) {
      const random = new NumpyRandom(SEED);
      draws = Array.from({ length: RESAMPLES }, () => random.choice(n, k));
      this.known.set(key, draws);
    }
    return draws;
  }
}

function summarize(values: readonly number[]): { mean: number; std: number } {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return { mean, std: Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / values.length) };
}
