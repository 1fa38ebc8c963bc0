import type { SamplingOptions } from "@cria/core";
import { type ChecksOf, optionChecks } from "@cria/core/internal";

const { number, whole } = optionChecks;

/** Checks of sampling parameters' types. The engine checks the ranges. */
export const samplingChecks: ChecksOf<Required<SamplingOptions>> = {
  temperature: number,
  topP: number,
  topK: number,
  minP: number,
  seed: whole,
};

/** Picks the sampling parameters from a larger set of options. Defaults: all tokens, temperature 1. */
export function pickSampling({
  temperature = 1,
  topP = 1,
  topK = 0,
  minP = 0,
  seed,
}: SamplingOptions): Required<Omit<SamplingOptions, "seed">> & Pick<SamplingOptions, "seed"> {
  return { temperature, topP, topK, minP, seed };
}
