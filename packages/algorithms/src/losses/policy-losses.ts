import { Registry } from "@cria/core";
import { cispoLoss } from "./cispo.js";
import { clipCovLoss } from "./clip-cov.js";
import { dppoKlLoss, dppoTvLoss } from "./dppo.js";
import { droLoss } from "./dro.js";
import { geoMeanLoss } from "./geo-mean.js";
import { gpgLoss } from "./gpg.js";
import { gspoLoss } from "./gspo.js";
import { klCovLoss } from "./kl-cov.js";
import type { PolicyLoss } from "./policy-loss.js";
import { sapoLoss } from "./sapo.js";
import { vanillaLoss } from "./vanilla.js";

const builtIn = {
  vanilla: vanillaLoss,
  gspo: gspoLoss,
  sapo: sapoLoss,
  cispo: cispoLoss,
  gpg: gpgLoss,
  geo_mean: geoMeanLoss,
  clip_cov: clipCovLoss,
  kl_cov: klCovLoss,
  dppo_tv: dppoTvLoss,
  dppo_kl: dppoKlLoss,
  dro: droLoss,
} satisfies Record<string, PolicyLoss>;

/** A built-in policy loss, or a name that was registered. */
export type PolicyLossName = keyof typeof builtIn | (string & {});

/** Named by `actor_rollout_ref.actor.policy_loss.loss_mode`. */
export const policyLosses = new Registry<PolicyLoss>("policy loss", builtIn, {
  alternative: "./module.ts#export",
});
