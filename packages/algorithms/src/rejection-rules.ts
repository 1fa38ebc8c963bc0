import { ConfigError } from "@cria/core";
import { clampLogRatio } from "./losses/log-ratio.js";

/**
 * The statistic of a rule: for each token an estimate of KL(rollout || training) with log r = training - rollout,
 * clamped to ±20 (Schulman, joschu.net/blog/kl-approx.html): k1 = -log r, k2 = (log r)^2 / 2, k3 = r - 1 - log r.
 */
export type RejectionEstimate = "k1" | "k2" | "k3";

/**
 * Tokens that are judged together: each by itself, or all of a sequence by the sum, the mean or the largest of their
 * estimates.
 */
export type RejectionLevel = "token" | "seq_sum" | "seq_mean" | "seq_max";

/** Keeps a token, or a sequence, if lower <= statistic <= upper. */
export interface RejectionRule {
  /** The name in configs: "<level>_<estimate>". */
  name: string;
  level: RejectionLevel;
  estimate: RejectionEstimate;
  lower: number;
  upper: number;
}

/** Names of verl 0.7, whose bounds apply to the inverse ratio, training graph / sampler. */
const older: Readonly<Record<string, string>> = {
  token: "token_k1",
  sequence: "seq_sum_k1",
  geometric: "seq_mean_k1",
};

// k1 has both signs, so a sequence's largest value says nothing about its smallest.
const names = ["token_k1", "token_k2", "token_k3"].concat(
  ["seq_sum", "seq_mean"].flatMap((level) => ["k1", "k2", "k3"].map((estimate) => `${level}_${estimate}`)),
  ["seq_max_k2", "seq_max_k3"],
);

const key = "algorithm.rollout_correction.rollout_rs";

/**
 * Rules of a config: names separated by commas, and as many thresholds, or one for all. A threshold of k1 is
 * "lower_upper", or x for 1/x to x (null: 2): bounds of the ratio sampler / training graph, whose logarithm is k1; with
 * the names of verl 0.7 (token, sequence, geometric), of its inverse. A threshold of k2 and k3 is the upper bound.
 * @param lower the lower bound in addition to one number: verl 0.7's form.
 * @throws ConfigError for unknown names, another number of thresholds, and empty ranges.
 */
export function parseRejectionRules(
  given: string,
  threshold: number | string | null,
  lower: number | null = null,
): RejectionRule[] {
  const wanted = given.split(",").map((name) => name.trim());
  const thresholds = threshold === null ? [null] : String(threshold).split(",");
  if (thresholds.length > 1 && thresholds.length !== wanted.length)
    throw makeThresholdError(`one threshold for each of ${wanted.join(", ")}, or one for all`, threshold, lower);
  return wanted.map((written, i) => {
    const name = older[written] ?? written;
    if (!names.includes(name)) {
      throw new ConfigError("is not a way to reject", {
        code: "config/unknown-name",
        subject: key,
        expected: `${names.join(", ")}, or several with commas in between`,
        received: written,
      });
    }
    const cut = name.lastIndexOf("_");
    const estimate = name.slice(cut + 1) as RejectionEstimate;
    const rule = { name, level: name.slice(0, cut) as RejectionLevel, estimate };
    const text = thresholds[thresholds.length === 1 ? 0 : i]!;
    if (estimate !== "k1") {
      const upper = Number(text ?? Number.NaN);
      if (upper > 0 && lower === null) return { ...rule, lower: Number.NEGATIVE_INFINITY, upper };
      throw makeThresholdError(`a number above 0 for ${name}`, threshold, lower);
    }
    const [least, most] = readRatioBounds(text, lower);
    if (!(least > 0 && least < most && most < Number.POSITIVE_INFINITY))
      throw makeThresholdError(
        `for ${written} a number above 1, or "lower_upper" with 0 < lower < upper`,
        threshold,
        lower,
      );
    const [from, to] = [Math.log(least), Math.log(most)];
    return written in older ? { ...rule, lower: -to, upper: -from } : { ...rule, lower: from, upper: to };
  });
}

function readRatioBounds(text: string | null, lower: number | null): [number, number] {
  const [first, second, ...rest] = text === null ? ["2"] : text.split("_");
  const [a, b] = [Number(first), Number(second)];
  if (rest.length > 0 || first!.trim() === "") return [Number.NaN, Number.NaN];
  if (second === undefined) return [lower ?? 1 / a, a];
  return lower === null && second.trim() !== "" ? [a, b] : [Number.NaN, Number.NaN];
}

function makeThresholdError(expected: string, threshold: number | string | null, lower: number | null): ConfigError {
  return new ConfigError("does not say which ratios stay", {
    code: "config/bad-value",
    subject: `${key}_threshold`,
    expected,
    received: `${JSON.stringify(threshold)}${lower === null ? "" : `, with rollout_rs_threshold_lower ${lower}`}`,
  });
}

const estimates: Record<RejectionEstimate, (logRatio: number) => number> = {
  k1: (logRatio) => -clampLogRatio(logRatio, 0),
  k2: (logRatio) => clampLogRatio(logRatio, 0) ** 2 / 2,
  k3: (logRatio) => Math.expm1(clampLogRatio(logRatio, 0)) - clampLogRatio(logRatio, 0),
};

/** 1 for each token of a sequence that any rule rejects. @param logRatios training - rollout of its sampled tokens. */
export function rejectTokens(logRatios: Float64Array, rules: readonly RejectionRule[]): Uint8Array {
  const rejected = new Uint8Array(logRatios.length);
  if (logRatios.length === 0) return rejected;
  for (const { level, estimate, lower, upper } of rules) {
    const values = logRatios.map(estimates[estimate]);
    const isOut = (value: number) => !(value >= lower && value <= upper);
    const sum = values.reduce((a, b) => a + b, 0);
    if (level === "token") {
      for (let t = 0; t < values.length; t++) if (isOut(values[t]!)) rejected[t] = 1;
    } else if (level === "seq_max" ? values.some(isOut) : isOut(level === "seq_mean" ? sum / values.length : sum)) {
      rejected.fill(1);
    }
  }
  return rejected;
}
