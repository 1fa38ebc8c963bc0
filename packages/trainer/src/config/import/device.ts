import type { TrainConfig } from "../train-config.js";

/** The device and threads that a config gives to models, as options of `loadModel`. */
export function importDevice({ trainer: { device, threads } }: Pick<TrainConfig, "trainer">) {
  return { device, threads: threads ?? undefined };
}
