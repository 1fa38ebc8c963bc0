import { dirname } from "node:path";
import { openTraining, type Training } from "cria";
import { loadConfig, trainConfigSchema } from "cria/config";
import { THREADS } from "./settings.js";

export interface OpenOptions {
  seed: number;
  steps: number;
  threads?: number;
}

/**
 * Opens a training of a config that logs nothing and saves nothing by the clock.
 * @param overrides "key.path=value".
 */
export function openConfig(
  config: string,
  { seed, steps, threads = THREADS }: OpenOptions,
  overrides: readonly string[],
): Promise<Training> {
  const { values } = loadConfig(trainConfigSchema, config, [
    `trainer.threads=${threads}`,
    `trainer.total_training_steps=${steps}`,
    `actor_rollout_ref.rollout.seed=${seed}`,
    `data.seed=${seed}`,
    "trainer.save_minutes=0",
    "trainer.logger=[]",
    ...overrides,
  ]);
  return openTraining(values, dirname(config));
}
