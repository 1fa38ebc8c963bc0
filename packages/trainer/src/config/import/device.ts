import type { TrainConfig } from "../train-config.js";

/** Reads device and threads from a config, as options of `loadModel`. */
export function importDevice({ trainer: { device, threads } }: Pick<TrainConfig, "trainer">) {
  return { device, threads: threads ?? undefined };
}
