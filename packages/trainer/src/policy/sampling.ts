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
