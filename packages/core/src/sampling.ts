import type { SamplingOptions } from "./policy-engine.js";

/** Picks the sampling parameters but the seed from a larger set of options. Defaults: all tokens, temperature 1. */
export function pickSampling({
  temperature = 1,
  topP = 1,
  topK = 0,
  minP = 0,
}: SamplingOptions): Required<Omit<SamplingOptions, "seed">> {
  return { temperature, topP, topK, minP };
}
