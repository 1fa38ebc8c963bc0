import { ConfigError, makeUniform } from "@cria/core";
import { formatValue } from "@cria/core/internal";
import type { PickedRow, PickRequest, RowSampler, RowSamplerOptions, StepOutcome } from "./row-sampler.js";
import { MOST_SAMPLES } from "./row-samples.js";

/** Default step size of a row's running success. */
const RATE = 0.5;
/** Minimum number of conversations of a row: a group of one has nothing to be compared with. */
const LEAST_SAMPLES = 2;
/** Default minimum weight of a row; rows that succeed half of the time weigh 1. */
const LEAST = 0.1;

/**
 * Samples rows of medium difficulty more often. Each row has a running success p, initially 1/2. Each time the row
 * is used, p moves towards the share of its group that reached the goal: p += rate (success - p). Rows are drawn
 * without replacement with weights max(least, 4 p (1 - p)): a row whose groups always or never succeed teaches
 * nothing and is drawn ever more rarely, but never excluded, because the policy changes.
 *
 * p (1 - p), the variance of a success, is the learnability of arXiv:2502.12272; Kimi k1.5 (arXiv:2501.12599, 2.3.3)
 * draws by 1 - p. The draw is that of Efraimidis and Spirakis (2006): the rows with the smallest -ln(u) / weight.
 *
 * With `samples: "harder"` the conversations of a step, as many as otherwise, are given to its rows by
 * max(least, 1 - p), at least 2 each: a row that seldom succeeds is tried more often, so that its first success comes
 * earlier, and a row that is solved costs less.
 *
 * `sampler_kwargs`: `rate`, in (0, 1], default 0.5; `least`, in (0, 1], default 0.1; `samples`, "even" (default) or
 * "harder".
 */
export class DifficultySampler implements RowSampler {
  private readonly success: Float64Array;
  private readonly rate: number;
  private readonly least: number;
  private readonly isHarder: boolean;

  /** @throws ConfigError for other keys or values of `sampler_kwargs`. */
  constructor(rows: readonly object[], { kwargs }: Pick<RowSamplerOptions, "kwargs">) {
    const { rate = RATE, least = LEAST, samples = "even", ...others } = kwargs;
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) throw refuse(unknown, "rate, least or samples", unknown);
    if (samples !== "even" && samples !== "harder") throw refuse("samples", "even or harder", formatValue(samples));
    this.isHarder = samples === "harder";
    this.rate = readShare("rate", rate);
    this.least = readShare("least", least);
    this.success = new Float64Array(rows.length).fill(0.5);
  }

  pick({ count, spare, samples, seed }: PickRequest): PickedRow[] {
    const uniform = makeUniform(seed);
    const drawn = Array.from(this.success, (p, row) => {
      const weight = Math.max(this.least, 4 * p * (1 - p));
      return { row, key: -Math.log(1 - uniform()) / weight };
    });
    drawn.sort((a, b) => a.key - b.key || a.row - b.row);
    const rows = drawn.slice(0, count + spare).map(({ row }) => row);
    if (!this.isHarder) return rows;
    // The step's rows, and each batch of spare rows that may replace some of them, have the same number of conversations.
    const parts = Array.from({ length: Math.ceil(rows.length / count) }, (_, k) =>
      rows.slice(k * count, (k + 1) * count),
    );
    return parts.flatMap((part) => {
      const shares = share(
        part.map((row) => Math.max(this.least, 1 - this.success[row]!)),
        samples * part.length,
        Math.min(LEAST_SAMPLES, samples),
      );
      return part.map((row, i) => ({ row, samples: shares[i]! }));
    });
  }

  update({ rows }: StepOutcome): void {
    for (const { row, success } of rows)
      if (success !== null) this.success[row]! += this.rate * (success - this.success[row]!);
  }

  save(): number[] {
    return [...this.success];
  }

  restore(state: unknown): void {
    this.success.set(state as number[]);
  }
}

/**
 * Splits a total into whole numbers by weights, each from `least` to the maximum of a row. The rest from rounding goes
 * to the largest remainders, and of equal ones to the first (Hamilton's method).
 */
function share(weights: readonly number[], total: number, least: number): number[] {
  const sum = weights.reduce((a, b) => a + b, 0);
  const free = total - least * weights.length;
  const quotas = weights.map((weight) => Math.min(MOST_SAMPLES - least, (free * weight) / sum));
  const shares = quotas.map((quota) => least + Math.floor(quota));
  const byRemainder = quotas
    .map((quota, i) => ({ i, rest: quota - Math.floor(quota) }))
    .sort((a, b) => b.rest - a.rest);
  let left = total - shares.reduce((a, b) => a + b, 0);
  for (const { i, rest } of byRemainder) {
    if (left <= 0 || rest === 0) break;
    shares[i]!++;
    left--;
  }
  return shares;
}

function readShare(name: string, value: unknown): number {
  if (typeof value === "number" && value > 0 && value <= 1) return value;
  throw refuse(name, "a number above 0 and at most 1", formatValue(value));
}

function refuse(name: string, expected: string, received: string): ConfigError {
  return new ConfigError("is not an option of the sampler difficulty", {
    code: "config/bad-value",
    subject: `data.sampler.sampler_kwargs.${name}`,
    expected,
    received,
  });
}
