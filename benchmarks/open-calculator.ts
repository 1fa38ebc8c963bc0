import { dirname, join } from "node:path";
import { openTraining, type Training } from "cria";
import { loadConfig, trainConfigSchema } from "cria/config";
import { THREADS } from "./settings.js";

const config = join(import.meta.dirname, "..", "examples", "calculator", "config.yaml");

/** Where paths of the calculator's config start. */
export const calculatorFolder = dirname(config);

/**
 * Opens a training of the demo's calculator.
 * @param overrides "key.path=value".
 */
export function openCalculator(
  { seed, steps, threads = THREADS }: { seed: number; steps: number; threads?: number },
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
  return openTraining(values, calculatorFolder);
}
