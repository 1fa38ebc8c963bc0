export { cispoLoss } from "./cispo.js";
export { clipCovLoss } from "./clip-cov.js";
export { dppoKlLoss, dppoTvLoss } from "./dppo.js";
export { droLoss } from "./dro.js";
export { geoMeanLoss } from "./geo-mean.js";
export { gpgLoss } from "./gpg.js";
export { gspoLoss } from "./gspo.js";
export { klCovLoss } from "./kl-cov.js";
export type {
  MiniBatch,
  PolicyLoss,
  PolicyLossInputs,
  TokenLoss,
} from "./policy-loss.js";
export type { PolicyLossParameters, PolicyLossTerms } from "./policy-loss-parameters.js";
export { type PolicyLossName, policyLosses } from "./policy-losses.js";
export { sapoLoss } from "./sapo.js";
export { vanillaLoss } from "./vanilla.js";
