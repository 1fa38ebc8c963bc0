import { ConfigError, makeUniform } from "@cria/core";
import { formatValue } from "@cria/core/internal";
import type { PickRequest, RowSampler, RowSamplerOptions, StepOutcome } from "./row-sampler.js";

/** Default step size of a row's running success. */
const RATE = 0.5;
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
 * `sampler_kwargs`: `rate`, in (0, 1], default 0.5; `least`, in (0, 1], default 0.1.
 */
export class DifficultySampler implements RowSampler {
  private readonly success: Float64Array;
  private readonly rate: number;
  private readonly least: number;

  /** @throws ConfigError for other keys or values of `sampler_kwargs`. */
  constructor(rows: readonly object[], { kwargs }: Pick<RowSamplerOptions, "kwargs">) {
    const { rate = RATE, least = LEAST, ...others } = kwargs;
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) throw refuse(unknown, "rate or least", unknown);
    this.rate = readShare("rate", rate);
    this.least = readShare("least", least);
    this.success = new Float64Array(rows.length).fill(0.5);
  }

  pick({ count, spare, seed }: PickRequest): number[] {
    const uniform = makeUniform(seed);
    const drawn = Array.from(this.success, (p, row) => {
      const weight = Math.max(this.least, 4 * p * (1 - p));
      return { row, key: -Math.log(1 - uniform()) / weight };
    });
    drawn.sort((a, b) => a.key - b.key || a.row - b.row);
    return drawn.slice(0, count + spare).map(({ row }) => row);
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
