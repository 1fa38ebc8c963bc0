import type { PolicyFiltration, RewardPart } from "../index.js";
import { readStored } from "../stored-values/stored-values.js";

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

/** Outputs of sessions: `keys` has of each row its group, its session in the group, and its place among the outputs. */
export interface MultiTrajectoriesCase {
  by_std: boolean;
  width: number;
  keys: [group: string, session: number, output: number][];
  mask: number[];
  rewards: number[];
  advantages: number[];
  returns: number[];
}

/** Tokens of a mini-batch, only those that the mask keeps. */
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
  /** Name of an intended difference; null: there is none. */
  deviates: string | null;
  parameters: Record<string, number>;
  kl_type: string | null;
  kl_coef: number;
  entropy_coeff: number;
  correction: Correction | null;
  loss_scale_factor: number;
  /** For deviation "clamp": verl's values from log-ratios that were clamped before. */
  clamped?: Evaluated;
}

export interface VerlValues {
  /** The releases that computed the values. */
  verl: string;
  torch: string;
  /** All names in this release of verl. */
  estimators: string[];
  policy_losses: string[];
  advantages: AdvantageCase[];
  multi_trajectories: MultiTrajectoriesCase[];
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
  topk_divergences: {
    topk: number;
    min_logprob: number | null;
    max_loss: number | null;
    vocabulary: number;
    /** Logits of the policy, [tokens, vocabulary]. */
    student: number[];
    /** [tokens, topk]. */
    ids: number[];
    teacher_logprobs: number[];
    loss: number;
    /** As long as `student`. */
    d_logits: number[];
    /** Mean probability of the candidates, by the teacher and by the policy. */
    masses: [number, number];
  }[];
  filtration: { method: PolicyFiltration["method"]; weight_pow: number; scores: number[]; weights: number[] }[];
}

/** Output of `fixtures/make_from_verl.py`: values and gradients by verl's own functions. */
export const verlValues = readStored<VerlValues>("verl.json.gz");

/** "lower_upper", verl's notation of IcePop's bounds, or only the upper one. */
export function readBounds(threshold: number | string): {
  rolloutIsThreshold: number;
  rolloutIsThresholdLower: number | null;
} {
  const [first, second] = String(threshold).split("_").map(Number);
  return second === undefined
    ? { rolloutIsThreshold: first!, rolloutIsThresholdLower: null }
    : { rolloutIsThreshold: second, rolloutIsThresholdLower: first! };
}
