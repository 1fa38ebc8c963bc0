// Loaded when rollouts begin (`roll-out.ts`).

export { makeAllFailedError, makeNeverCalledError, startRollouts } from "@cria/rollout";
