import { Registry } from "@cria/core";
import type { AdvantageEstimator } from "./advantage-estimator.js";
import { estimateGae } from "./gae.js";
import { estimateGdpo } from "./gdpo.js";
import { estimateGigpo } from "./gigpo.js";
import { estimateGpg } from "./gpg.js";
import { estimateGrpo } from "./grpo.js";
import { estimateGrpoPassk } from "./grpo-passk.js";
import { estimateMaxRl } from "./max-rl.js";
import { estimateMtGrpo } from "./mt-grpo.js";
import { estimateOpo } from "./opo.js";
import { estimateOptimalTokenBaseline } from "./optimal-token-baseline.js";
import { estimateRae } from "./rae.js";
import { estimateRaft } from "./raft.js";
import { estimateReinforcePlusPlus, estimateReinforcePlusPlusBaseline } from "./reinforce-plus-plus.js";
import { estimateRemax } from "./remax.js";
import { estimateRloo } from "./rloo.js";
import { estimateTreeGrpo } from "./tree-grpo.js";
import { estimateVine } from "./vine.js";

const builtIn = {
  gae: estimateGae,
  grpo: estimateGrpo,
  grpo_vectorized: estimateGrpo,
  grpo_passk: estimateGrpoPassk,
  rloo: estimateRloo,
  rloo_vectorized: estimateRloo,
  reinforce_plus_plus: estimateReinforcePlusPlus,
  reinforce_plus_plus_baseline: estimateReinforcePlusPlusBaseline,
  remax: estimateRemax,
  opo: estimateOpo,
  gpg: estimateGpg,
  gdpo: estimateGdpo,
  gigpo: estimateGigpo,
  mt_grpo: estimateMtGrpo,
  max_rl: estimateMaxRl,
  rae: estimateRae,
  raft: estimateRaft,
  tree_grpo: estimateTreeGrpo,
  vine: estimateVine,
  optimal_token_baseline: estimateOptimalTokenBaseline,
  tir_optimal_token_baseline: estimateOptimalTokenBaseline,
} satisfies Record<string, AdvantageEstimator>;

/** A built-in estimator, or a name that was registered. */
export type EstimatorName = keyof typeof builtIn | (string & {});

/**
 * Estimators by `algorithm.adv_estimator`. verl's names in `_vectorized` are another implementation of the same
 * estimator: here they name the same function.
 */
export const advantageEstimators = new Registry<AdvantageEstimator>("advantage estimator", builtIn, {
  alternative: "./module.ts#export",
});
