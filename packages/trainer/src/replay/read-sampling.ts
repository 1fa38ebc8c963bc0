import { hashSeed, type TrajectorySampling } from "@cria/core";
import type { DumpLine } from "@cria/records";
import type { TrainConfig } from "../config/train-config.js";
import { VALIDATION_SEED } from "../validation/validate.js";

/** How a conversation's tokens were drawn: as its line says, or for lines of earlier versions as the run's config does. */
export function readSampling(
  line: DumpLine,
  { actor_rollout_ref }: TrainConfig,
  validation: boolean,
): TrajectorySampling {
  const { sampling, step, uid, sample, metrics } = line;
  if (sampling) {
    const { seed, temperature, top_p: topP, top_k: topK, min_p: minP } = sampling;
    return { seed, temperature, topP, topK, minP };
  }
  const { rollout } = actor_rollout_ref;
  const { val_kwargs } = rollout;
  const given = validation ? val_kwargs : rollout;
  const draw = [validation ? VALIDATION_SEED : rollout.seed, step!, uid, sample];
  return {
    seed: metrics.refilled ? hashSeed(...draw, "attempt", metrics.refilled) : hashSeed(...draw),
    temperature: validation && !val_kwargs.do_sample ? 0 : given.temperature,
    topP: given.top_p,
    topK: Math.max(0, given.top_k),
    minP: given.min_p,
  };
}
