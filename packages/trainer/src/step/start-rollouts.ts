// Loaded when rollouts begin (`roll-out.ts`).

export { startRollouts } from "@cria/rollout";
export { makeAllFailedError, makeNeverCalledError } from "@cria/rollout/internal";
