import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { correctRollout, defaultPolicyLoss, type PolicyLossOptions, policyLosses } from "../index.js";
import { evaluateLoss } from "../stored-values/evaluate-loss.js";
import { expectClose, expectNear, toOffsets } from "../stored-values/stored-values.js";
import { type TrlLossCase, type TrlSettings, trlValues } from "./trl-values.js";

/** Loss types of TRL that do not exist here, each with its reason. */
const notHere: Record<string, string> = {
  vespo: "weights of a gamma function: a loss of one's own",
};

/** Settings of TRL that do not affect the loss of a text model. */
const ofNoLoss = ["chat_template_kwargs", "log_multimodal", "num_generations_eval", "pad_to_multiple_of"].concat(
  "router_aux_loss_coef",
);

const aggregationOf: Record<string, string> = {
  grpo: "seq-mean-token-mean",
  sapo: "seq-mean-token-mean",
  bnpo: "token-mean",
  dapo: "token-mean",
  cispo: "token-mean",
  dr_grpo: "seq-mean-token-sum-norm",
  luspo: "seq-mean-token-sum",
};

/** As the table of docs/differences-trl.md has it. */
function toOptions(s: TrlSettings): PolicyLossOptions {
  const lossAggMode = aggregationOf[s.loss_type!]!;
  const gspo = policyLosses.get("gspo");
  const lossMode =
    s.importance_sampling_level === "sequence"
      ? // All except grpo weigh a sequence by its length: gspo with another aggregation.
        { ...gspo, aggregation: lossAggMode }
      : (({ cispo: "cispo", sapo: "sapo" } as Record<string, string>)[s.loss_type!] ?? "vanilla");
  const isCispo = s.loss_type === "cispo";
  const type = s.use_bias_correction_kl === false ? "k3" : "k3+";
  return {
    ...defaultPolicyLoss,
    lossMode,
    lossAggMode,
    lossScaleFactor: s.max_completion_length!,
    clipRatioLow: isCispo ? 1 : s.epsilon!,
    clipRatioHigh: isCispo ? s.epsilon_high! - 1 : s.epsilon_high!,
    // TRL has no bound by default.
    clipRatioC: s.delta ?? 1e9,
    tauPos: s.sapo_temperature_pos ?? 1,
    tauNeg: s.sapo_temperature_neg ?? 1.05,
    entropyCoeff: s.entropy_coef ?? 0,
    kl: s.beta ? { coefficient: s.beta, type } : null,
  };
}

const spread = (perRow: readonly number[], lengths: readonly number[]) =>
  lengths.flatMap((length, row) => new Array<number>(length).fill(perRow[row]!));

/** Weights by `rollout_is`, `rollout_is_threshold`; for TRL's masks "lower_upper" of it. */
function weigh(c: TrlLossCase): Float32Array {
  const { settings: s } = c;
  const tokens = trlValues.tokens[c.tokens]!;
  const [level, constraint] = s.vllm_importance_sampling_mode!.split("_");
  const { weights } = correctRollout(
    {
      oldLogprobs: tokens.old_logprobs,
      rolloutLogprobs: tokens.sampling_logprobs,
      responseMask: tokens.logprobs.map(() => 1),
      offsets: toOffsets(tokens.lengths),
    },
    {
      rolloutIs: level as "token" | "sequence",
      rolloutIsThreshold: s.vllm_importance_sampling_clip_max!,
      rolloutIsThresholdLower: constraint === "mask" ? (s.vllm_importance_sampling_clip_min ?? 0) : null,
      rolloutRs: [],
      rolloutIsBatchNormalize: false,
      rolloutTokenVetoThreshold: null,
    },
  );
  return weights!;
}

function evaluate(c: TrlLossCase, changes: Partial<PolicyLossOptions> = {}) {
  const tokens = trlValues.tokens[c.tokens]!;
  return evaluateLoss(
    { ...toOptions(c.settings), ...changes },
    tokens.lengths,
    tokens.logprobs,
    tokens.entropy_values,
    {
      advantages: spread(c.advantages, tokens.lengths),
      // TRL uses the policy itself as the old one if each batch makes one update.
      oldLogprobs: c.settings.num_iterations === 1 && !c.settings.use_vllm ? tokens.logprobs : tokens.old_logprobs,
      refLogprobs: tokens.ref_logprobs,
      ...(c.is_weights ? { rolloutIsWeights: [...weigh(c)] } : {}),
    },
  );
}

const find = (deviates: string | null) => trlValues.losses.filter((c) => c.deviates === deviates);
const describeSettings = ({ settings, tokens, micro }: TrlLossCase) => {
  const { loss_type, max_completion_length: _, ...more } = settings;
  return `${loss_type}, ${JSON.stringify(more).replaceAll(/["{}]/g, "")}, ${tokens}, micro-batches ${micro}`;
};
const named = (cases: TrlLossCase[]) => cases.map((c) => [describeSettings(c), c] as const);

/** Within a float32's digits of the summands, of the order of 1. */
const expectLoss = (actual: number, expected: number) =>
  expect(Math.abs(actual - expected), `loss ${actual} for ${expected}`).toBeLessThan(1e-6 * Math.abs(expected) + 1e-7);

/** On each token, its sequence's value. */
const perSequence = (c: TrlLossCase, give: (from: number, to: number) => number) => {
  const { lengths } = trlValues.tokens[c.tokens]!;
  const offsets = toOffsets(lengths);
  return Array.from({ length: offsets.length - 1 }).flatMap((_, s) => {
    const [from, to] = [offsets[s]!, offsets[s + 1]!];
    return new Array<number>(to - from).fill(give(from, to));
  });
};
const multiply = (values: ArrayLike<number>, factors: readonly number[]) =>
  Array.from(values, (value, i) => value * factors[i]!);

describe(`losses and their gradients by TRL ${trlValues.trl}`, () => {
  it("are there for every loss type", () => {
    const compared = find(null).map((c) => c.settings.loss_type!);
    expect([...new Set([...compared, ...Object.keys(notHere)])].sort()).toEqual([...trlValues.loss_types].sort());
  });

  it("have a row in docs/differences-trl.md for every setting that TRL reads", () => {
    const page = readFileSync(join(import.meta.dirname, "..", "..", "..", "..", "docs", "differences-trl.md"), "utf8");
    const missing = trlValues.settings.filter((name) => !ofNoLoss.includes(name) && !page.includes(`\`${name}`));
    expect(missing).toEqual([]);
  });

  it.each(named(find(null)))("%s", (_, c) => {
    const { settings: s } = c;
    const ours = evaluate(c);
    expectLoss(ours.loss, c.loss);
    expectClose(ours.d_logprobs, c.d_logprobs);
    expectClose(ours.d_entropy, c.d_entropy);
    if (c.is_weights) expectClose(weigh(c), c.is_weights);
    if (c.micro > 1 || s.importance_sampling_level === "sequence") return;
    const clipped = c.metrics["clip_ratio/region_mean"];
    if (clipped !== undefined) expectNear(ours.metrics.pg_clipfrac!, clipped, "pg_clipfrac");
    if (aggregationOf[s.loss_type!] !== "token-mean") return;
    expectNear(ours.metrics.entropy!, c.metrics.entropy!, "entropy");
    if (s.beta) expectNear(ours.metrics.kl_loss!, c.metrics.kl!, "KL");
  });
});

describe("losses that differ from TRL's on purpose", () => {
  const logRatios = (c: TrlLossCase) => {
    const { logprobs, old_logprobs } = trlValues.tokens[c.tokens]!;
    return logprobs.map((logprob, i) => logprob - old_logprobs[i]!);
  };

  it.each(named(find("clamp")))("log-ratios beyond ±20 count as ±20, and have no slope: %s", (_, c) => {
    const ours = evaluate(c);
    const isWithin = logRatios(c).map((logRatio) => Math.abs(logRatio) <= 20);
    const pick = (values: number[]) => values.filter((_, i) => isWithin[i]);
    expectClose(pick(ours.d_logprobs), pick(c.d_logprobs));
    const beyond = ours.d_logprobs.filter((_, i) => !isWithin[i]);
    expect(beyond.every((d) => d + 0 === 0)).toBe(true);
    expect(c.loss).toBeGreaterThan(1e6 * ours.loss);
  });

  it.each(named(find("large KL")))("the KL of a token is at most 10, without slope from there on: %s", (_, c) => {
    const { logprobs, ref_logprobs } = trlValues.tokens[c.tokens]!;
    const ours = evaluate(c);
    const apart = logprobs.map((logprob, i) => logprob - ref_logprobs[i]!);
    const values = apart.map((d) => Math.expm1(-d) + d);
    const lost = values.reduce((sum, value) => sum + Math.max(0, value - 10), 0);
    expectNear(ours.loss + (c.settings.beta! * lost) / logprobs.length, c.loss, "loss");
    const pick = (gradients: number[]) => gradients.filter((_, i) => values[i]! <= 10);
    expectClose(pick(ours.d_logprobs), pick(c.d_logprobs));
    expect(lost).toBeGreaterThan(10);
  });

  it.each(named(find("corrected KL")))("the KL's gradient is not weighed by the ratio: %s", (_, c) => {
    const policy = evaluate(c, { kl: null }).d_logprobs;
    const subtract = (gradients: number[]) => gradients.map((d, i) => d - policy[i]!);
    const ours = subtract(evaluate(c).d_logprobs);
    expectClose(multiply(ours, logRatios(c).map(Math.exp)), subtract(c.d_logprobs), 1e-5);
  });

  it.each(named(find("entropy bonus")))("the entropy is aggregated as the loss is: %s", (_, c) => {
    const ours = evaluate(c);
    expectClose(ours.d_logprobs, c.d_logprobs);
    const tokens = ours.d_entropy.length;
    expectClose(new Array(tokens).fill(-c.settings.entropy_coef! / tokens), c.d_entropy);
    const { d_entropy } = evaluate(c, { lossAggMode: "token-mean", lossMode: "vanilla" });
    expectClose(d_entropy, c.d_entropy);
  });

  it.each(named(find("empty rows")))("rows without a token are not averaged in: %s", (_, c) => {
    const { lengths } = trlValues.tokens[c.tokens]!;
    const share = lengths.filter((length) => length > 0).length / lengths.length;
    expect(share).toBeLessThan(1);
    const ours = evaluate(c);
    expectLoss(ours.loss * share, c.loss);
    expectClose(
      ours.d_logprobs.map((d) => d * share),
      c.d_logprobs,
    );
  });

  it.each(named(find("micro-batches")))("a mean over tokens is one over the mini-batch: %s", (_, c) => {
    const { lengths } = trlValues.tokens[c.tokens]!;
    const half = lengths.length / c.micro;
    const counts = [lengths.slice(0, half), lengths.slice(half)].map((part) => part.reduce((a, b) => a + b, 0));
    expect(counts[0]).not.toBe(counts[1]);
    const tokens = counts[0]! + counts[1]!;
    const factors = Array.from({ length: tokens }, (_, i) => tokens / (2 * counts[i < counts[0]! ? 0 : 1]!));
    expectClose(multiply(evaluate(c).d_logprobs, factors), c.d_logprobs);
  });

  it.each(named(find("weights of a sequence's tokens")))("each token has its own weight: %s", (_, c) => {
    const weights = weigh(c);
    expectClose(weights, c.is_weights!);
    const unweighted = evaluate({ ...c, is_weights: null }).d_logprobs;
    const means = perSequence(c, (from, to) => weights.slice(from, to).reduce((a, b) => a + b, 0) / (to - from));
    expectClose(multiply(unweighted, means), c.d_logprobs);
    expectClose(multiply(unweighted, [...weights]), evaluate(c).d_logprobs);
  });

  it("have a test each", () => {
    const tested = ["clamp", "large KL", "corrected KL", "entropy bonus", "empty rows", "micro-batches"];
    const told = new Set(trlValues.losses.flatMap((c) => c.deviates ?? []));
    expect([...told].sort()).toEqual([...tested, "weights of a sequence's tokens"].sort());
  });
});
