import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect } from "vitest";
import type { PolicyFiltration, RewardPart } from "../index.js";

export interface AdvantageCase {
  name: string;
  kind: "outcome" | "steps" | "extreme";
  variant: string;
  gamma: number;
  lam: number;
  by_std: boolean;
  width: number;
  groups: string[];
  mask: number[];
  rewards: number[];
  values?: number[];
  baselines?: number[];
  parts?: RewardPart[];
  old_logprobs?: number[];
  sum_pi_squared?: number[];
  is_weights?: number[] | null;
  advantages: number[];
  returns: number[];
  explained: number | null;
}

/** Tokens of a mini-batch, those alone that the mask leaves in. */
export interface Tokens {
  lengths: number[];
  logprobs: number[];
  old_logprobs: number[];
  ref_logprobs: number[];
  advantages: number[];
  entropy_values: number[];
  is_weights: number[];
}

export interface Evaluated {
  loss: number;
  d_logprobs: number[];
  d_entropy: number[];
  metrics: Record<string, number>;
}

export interface Correction {
  loss_type?: "ppo_clip" | "reinforce";
  rollout_is: "token" | "sequence" | null;
  rollout_is_threshold?: number | string;
  rollout_is_batch_normalize?: boolean;
  rollout_rs: string | null;
  rollout_rs_threshold: number | string | null;
}

export interface LossCase extends Evaluated {
  mode: string;
  agg: string;
  /** Name of an entry of `tokens`. */
  tokens: string;
  corrected: boolean;
  /** What differs on purpose, by name; null: nothing does. */
  deviates: string | null;
  parameters: Record<string, number>;
  kl_type: string | null;
  kl_coef: number;
  entropy_coeff: number;
  correction: Correction | null;
  loss_scale_factor: number;
  /** Of deviation "clamp": by verl, with log-ratios that were clamped before. */
  clamped?: Evaluated;
}

export interface VerlValues {
  /** The releases that made the values. */
  verl: string;
  torch: string;
  /** All names that this verl has. */
  estimators: string[];
  policy_losses: string[];
  advantages: AdvantageCase[];
  whitened_equals: { name: string; largest: number }[];
  tokens: Record<string, Tokens>;
  losses: LossCase[];
  kl: { d: number[]; types: Record<string, { values: number[]; gradients: number[] }> };
  value_loss: {
    agg: string;
    loss_scale_factor: number;
    lengths: number[];
    values: number[];
    old_values: number[];
    returns: number[];
    loss: number;
    d_values: number[];
    clipfrac: number;
    vpred_mean: number;
  }[];
  whiten: {
    values: number[];
    mask: number[];
    shift_mean: boolean;
    whitened: number[];
    mean: number;
    variance: number;
  }[];
  logprobs: Record<string, { width: number; mask: number[]; old: number[]; rollout: number[] }>;
  kl_in_reward: {
    type: string;
    logprobs: string;
    scores: number[];
    coefficient: number;
    rewards: number[];
    kl: number;
    target: number;
    horizon: number;
    next_coefficient: number;
  }[];
  kl_controller: { start: number; target: number; horizon: number; n: number; kls: number[]; coefficients: number[] };
  rollout_correction: (Required<Omit<Correction, "loss_type">> & {
    logprobs: string;
    weights: number[] | null;
    kept: number[];
    metrics: Record<string, number>;
  })[];
  filtration: { method: PolicyFiltration["method"]; weight_pow: number; scores: number[]; weights: number[] }[];
}

/** What `fixtures/make_from_verl.py` wrote: values and gradients by verl's own functions. */
export const verlValues: VerlValues = JSON.parse(
  gunzipSync(readFileSync(join(import.meta.dirname, "..", "..", "fixtures", "verl.json.gz"))).toString(),
);

/** Each entry within `tolerance` of it, and what is lost where large numbers cancel. */
export function expectClose(actual: ArrayLike<number>, expected: readonly number[], tolerance = 1e-6): void {
  expect(actual.length).toBe(expected.length);
  const largest = expected.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  for (let i = 0; i < expected.length; i++)
    expect(Math.abs(actual[i]! - expected[i]!), `entry ${i}: ${actual[i]} for ${expected[i]}`).toBeLessThanOrEqual(
      tolerance * (Math.abs(expected[i]!) + 0.1 * largest) + 1e-12,
    );
}

/** A number within `tolerance` of it. */
export function expectNear(actual: number, expected: number, what: string, tolerance = 1e-6): void {
  expect(Math.abs(actual - expected), `${what}: ${actual} for ${expected}`).toBeLessThanOrEqual(
    tolerance * Math.abs(expected) + 1e-9,
  );
}

/** Offsets of rows of equal width. */
export const equalRows = (tokens: number, width: number) =>
  Int32Array.from({ length: tokens / width + 1 }, (_, i) => i * width);

/** Offsets of the sequences that have any token: no other reaches a loss. */
export function toOffsets(lengths: readonly number[]): Int32Array {
  const offsets = [0];
  for (const length of lengths) if (length > 0) offsets.push(offsets.at(-1)! + length);
  return Int32Array.from(offsets);
}

/** "lower_upper", as verl spells IcePop's bounds, or the upper one alone. */
export function readBounds(threshold: number | string): {
  rolloutIsThreshold: number;
  rolloutIsThresholdLower: number | null;
} {
  const [first, second] = String(threshold).split("_").map(Number);
  return second === undefined
    ? { rolloutIsThreshold: first!, rolloutIsThresholdLower: null }
    : { rolloutIsThreshold: second, rolloutIsThresholdLower: first! };
}
