import { Registry } from "../registry.js";
import type { AdvantageEstimator } from "./advantage-estimator.js";
import { estimateGae } from "./gae.js";
import { estimateGpg } from "./gpg.js";
import { estimateGrpo } from "./grpo.js";
import { estimateGrpoPassk } from "./grpo-passk.js";
import { estimateOpo } from "./opo.js";
import { estimateReinforcePlusPlus, estimateReinforcePlusPlusBaseline } from "./reinforce-plus-plus.js";
import { estimateRemax } from "./remax.js";
import { estimateRloo } from "./rloo.js";

/** By `algorithm.adv_estimator`. */
export const advantageEstimators = new Registry<AdvantageEstimator>("advantage estimator", {
  gae: estimateGae,
  grpo: estimateGrpo,
  grpo_passk: estimateGrpoPassk,
  rloo: estimateRloo,
  reinforce_plus_plus: estimateReinforcePlusPlus,
  reinforce_plus_plus_baseline: estimateReinforcePlusPlusBaseline,
  remax: estimateRemax,
  opo: estimateOpo,
  gpg: estimateGpg,
});
