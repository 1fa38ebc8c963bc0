import { Registry } from "@cria/core";
import type { LossTerm } from "./loss-term.js";

/** Loss terms that programs register, or configs name in `actor_rollout_ref.actor.loss_terms`. None is built in. */
export const lossTerms = new Registry<LossTerm>("loss term", {}, { alternative: "./module.ts#export" });
