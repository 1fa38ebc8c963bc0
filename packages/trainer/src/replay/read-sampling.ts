import { hashSeed, type TrajectorySampling } from "@cria/core";
import type { DumpLine } from "@cria/records";
import { importSampling, importValidation } from "../config/import/sampling.js";
import type { TrainConfig } from "../config/train-config.js";
import { VALIDATION_SEED } from "../validation/validate.js";

/** Sampling parameters of a conversation: from its line or, for lines of earlier versions, from the run's config. */
export function readSampling(line: DumpLine, config: TrainConfig, validation: boolean): TrajectorySampling {
  const { sampling, step, uid, sample, metrics } = line;
  if (sampling) {
    const { seed, temperature, top_p: topP, top_k: topK, min_p: minP, earlier_seeds: earlierSeeds } = sampling;
    return { seed, temperature, topP, topK, minP, ...(earlierSeeds ? { earlierSeeds } : {}) };
  }
  const { n: _, tree: __, ...given } = validation ? importValidation(config) : importSampling(config);
  const draw = [validation ? VALIDATION_SEED : config.actor_rollout_ref.rollout.seed, step!, uid, sample];
  const seed = metrics.refilled ? hashSeed(...draw, "attempt", metrics.refilled) : hashSeed(...draw);
  return { ...given, seed };
}
