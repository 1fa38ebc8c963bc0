import { type ChecksOf, checkOptions, isObject, type OptionCheck, optionChecks } from "@cria/core/internal";
import type { Aggregation } from "./aggregate.js";
import type { KlEstimate } from "./kl.js";
import type { PolicyLoss } from "./losses/policy-loss.js";
import { teacherTermDefaults } from "./losses/policy-loss-defaults.js";
import { defaultPolicyLoss, type PolicyLossOptions } from "./policy-loss-options.js";
import type { TeacherTermOptions } from "./teacher-term.js";
import type { LossTerm } from "./terms/loss-term.js";

/** Options of every loss, in addition to its own parameters. */
export interface LossTerms {
  /** Aggregation of the tokens' losses, or the name of one; default "token-mean". */
  aggregation?: string | Aggregation;
  /** Divisor of "seq-mean-token-sum-norm"; default: the longest response allowed. */
  scaleFactor?: number;
  /** Weight of the entropy bonus; default 0. */
  entropy?: number;
  /** Weight of the cross-entropy of tools' answers, 0 or more (ECHO: 0.1); default 0. */
  observations?: number;
  /** Weight of the cross-entropy of demonstrations (an option of `policy.train` and `train`), 0 or more; default 0. */
  demonstrations?: number;
  /** Further terms, by names of your own, each with its weight in the loss. */
  terms?: Record<string, { term: string | LossTerm; coefficient: number }>;
  /** Adds the KL to the reference policy, with the estimate `type` (default "low_var_kl"). */
  kl?: { coefficient: number; type?: string | KlEstimate };
  /** Draws the policy towards a teacher: `policy.train(batch, loss, { teacher: await loadTeacher(path, policy) })`. */
  teacher?: Partial<TeacherTermOptions>;
}

/** Bounds of probability ratios: equal on both sides, or separate. Default 0.2. */
export type Clip = number | { low: number; high: number };

const terms = ({
  aggregation,
  scaleFactor,
  entropy,
  observations,
  demonstrations,
  terms: own,
  kl,
  teacher,
}: LossTerms): Partial<PolicyLossOptions> => ({
  ...(aggregation === undefined ? {} : { lossAggMode: aggregation }),
  ...(scaleFactor === undefined ? {} : { lossScaleFactor: scaleFactor }),
  ...(entropy === undefined ? {} : { entropyCoeff: entropy }),
  ...(observations === undefined ? {} : { observationCoeff: observations }),
  ...(demonstrations === undefined ? {} : { demonstrationCoeff: demonstrations }),
  ...(own ? { terms: own } : {}),
  ...(kl ? { kl: { coefficient: kl.coefficient, type: kl.type ?? "low_var_kl" } } : {}),
  ...(teacher ? { teacher: { ...teacherTermDefaults, ...teacher } } : {}),
});

const clipping = (clip: Clip | undefined): Partial<PolicyLossOptions> => {
  if (clip === undefined) return {};
  return typeof clip === "number"
    ? { clipRatioLow: clip, clipRatioHigh: clip }
    : { clipRatioLow: clip.low, clipRatioHigh: clip.high };
};

const { any, number } = optionChecks;

const teacherChecks: ChecksOf<TeacherTermOptions> = {
  estimate: any,
  topk: any,
  coefficient: number,
  taskRewards: any,
  policyGradient: any,
  lossMode: any,
  clipRatioLow: any,
  clipRatioHigh: any,
  maxLoss: any,
  minLogprob: any,
};

const termChecks: ChecksOf<Required<LossTerms>> = {
  aggregation: any,
  scaleFactor: number,
  entropy: number,
  observations: number,
  demonstrations: number,
  terms: optionChecks.object,
  kl: [
    (value) => isObject(value) && "coefficient" in value,
    "{ coefficient, type }",
    { coefficient: number, type: any },
  ],
  teacher: [isObject, "an object with options of the teacher's term", { ...teacherChecks }],
};

const clip: OptionCheck = [
  (value) => number[0](value) || (isObject(value) && "low" in value && "high" in value),
  "a number, or { low, high }",
  { low: number, high: number },
];
const divergence: OptionCheck = [(value) => value === "tv" || value === "kl", '"tv" or "kl"'];

/**
 * Makes the loss that `losses` calls `name`.
 * @param checks checks of the options that other losses lack.
 * @throws ConfigError that names an unknown or wrong option.
 */
function make<Given extends LossTerms & { clip?: Clip }>(
  name: string,
  lossMode: string | PolicyLoss,
  given: Given,
  checks: ChecksOf<Required<Omit<Given, keyof LossTerms>>>,
  own: Partial<PolicyLossOptions> = {},
): PolicyLossOptions {
  checkOptions(`losses.${name}`, given, { ...termChecks, ...checks } as unknown as ChecksOf<Required<Given>>);
  return { ...defaultPolicyLoss, lossMode, ...terms(given), ...clipping(given.clip), ...own };
}

/**
 * Policy losses, each with its parameters; omitted ones have the config's defaults. `policy.train` minimises them. An
 * unknown or wrong option is a ConfigError.
 */
export const losses = {
  /** PPO's clipped surrogate with a dual clip (arXiv:1707.06347, 1912.09729). `dualClip`: default 3. */
  ppo: (given: LossTerms & { clip?: Clip; dualClip?: number } = {}): PolicyLossOptions =>
    make("ppo", "vanilla", given, { clip, dualClip: number }, given.dualClip ? { clipRatioC: given.dualClip } : {}),
  /** GSPO: one clipped ratio for each sequence (arXiv:2507.18071). */
  gspo: (given: LossTerms & { clip?: Clip } = {}): PolicyLossOptions => make("gspo", "gspo", given, { clip }),
  /** SAPO: a soft gate instead of the clip (arXiv:2511.20347). Temperatures: default 1. */
  sapo: (given: LossTerms & { tauPos?: number; tauNeg?: number } = {}): PolicyLossOptions =>
    make(
      "sapo",
      "sapo",
      given,
      { tauPos: number, tauNeg: number },
      {
        tauPos: given.tauPos ?? defaultPolicyLoss.tauPos,
        tauNeg: given.tauNeg ?? defaultPolicyLoss.tauNeg,
      },
    ),
  /** CISPO: clipped importance weights, which pass no gradient (arXiv:2506.13585). */
  cispo: (given: LossTerms & { clip?: Clip } = {}): PolicyLossOptions => make("cispo", "cispo", given, { clip }),
  /** GPG: advantage times logprob, without a ratio (arXiv:2504.02546). */
  gpg: (given: LossTerms = {}): PolicyLossOptions => make("gpg", "gpg", given, {}),
  /** GMPO: the geometric mean of a sequence's ratios (arXiv:2507.20673). */
  geoMean: (given: LossTerms & { clip?: Clip } = {}): PolicyLossOptions => make("geoMean", "geo_mean", given, { clip }),
  /** Clip-Cov: tokens of high covariance lose their gradient (arXiv:2505.22617). */
  clipCov: (
    given: LossTerms & { clip?: Clip; ratio?: number; lower?: number; upper?: number } = {},
  ): PolicyLossOptions =>
    make(
      "clipCov",
      "clip_cov",
      given,
      { clip, ratio: number, lower: number, upper: number },
      {
        clipCovRatio: given.ratio ?? defaultPolicyLoss.clipCovRatio,
        clipCovLb: given.lower ?? defaultPolicyLoss.clipCovLb,
        clipCovUb: given.upper ?? defaultPolicyLoss.clipCovUb,
      },
    ),
  /** KL-Cov: a KL penalty on tokens of high covariance (arXiv:2505.22617). */
  klCov: (given: LossTerms & { ratio?: number; coefficient?: number } = {}): PolicyLossOptions =>
    make(
      "klCov",
      "kl_cov",
      given,
      { ratio: number, coefficient: number },
      {
        klCovRatio: given.ratio ?? defaultPolicyLoss.klCovRatio,
        ppoKlCoef: given.coefficient ?? defaultPolicyLoss.ppoKlCoef,
      },
    ),
  /**
   * DPPO: leaves out a token if its divergence from the sampler is too large, by total variation or by KL
   * (arXiv:2602.04879).
   */
  dppo: (given: LossTerms & { divergence?: "tv" | "kl"; clip?: Clip } = {}): PolicyLossOptions =>
    make("dppo", given.divergence === "kl" ? "dppo_kl" : "dppo_tv", given, { divergence, clip }),
  /** DRO: a squared log-ratio, of weight `beta`, instead of the clip (arXiv:2405.19107). */
  dro: (given: LossTerms & { beta: number }): PolicyLossOptions =>
    make("dro", "dro", given, { beta: number }, { droBeta: given.beta }),
  /** A loss of your own, with the parameters that it reads. */
  custom: (loss: PolicyLoss, given: LossTerms & { clip?: Clip } = {}): PolicyLossOptions =>
    make("custom", loss, given, { clip }),
};
