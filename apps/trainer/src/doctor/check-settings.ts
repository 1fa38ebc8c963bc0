import { CriaError } from "@cria/core";
import { openRegistries, type TrainConfig } from "@cria/trainer";
import { checkTrainConfig, importSettings, loadAlgorithms, providePackages } from "@cria/trainer/internal";
import { bad, type Check } from "./check.js";

/**
 * Checks that a config's settings fit together, as a training does before it loads a model. Estimators and losses that
 * the config names by path are loaded.
 */
export async function checkSettings(config: TrainConfig, folder: string): Promise<Check[]> {
  try {
    providePackages();
    const registries = openRegistries();
    await loadAlgorithms(config, folder, registries);
    checkTrainConfig(config, importSettings(config), registries);
    return [];
  } catch (error) {
    if (!(error instanceof CriaError)) throw error;
    const { message, remedy, subject } = error;
    // Some subjects are keys with their values.
    const key = subject !== undefined && /^[\w.]+$/.test(subject) ? subject : undefined;
    return [bad("problem", "settings", message, remedy ?? "correct it", key)];
  }
}
