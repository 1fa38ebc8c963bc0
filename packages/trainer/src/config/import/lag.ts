import type { TrainConfig } from "../train-config.js";

/** Updates between the policy that samples a step and the one that learns from it. */
export function importLag({ trainer }: Pick<TrainConfig, "trainer">): number {
  const { trainer_mode: mode, colocate_async, separate_async } = trainer.v1;
  if (mode === "sync") return 0;
  return (mode === "colocate_async" ? colocate_async : separate_async).num_warmup_batches;
}
