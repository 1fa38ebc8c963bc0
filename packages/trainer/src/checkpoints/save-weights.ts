import type { PolicyEngine } from "@cria/core";
import type { RunFolder } from "./run-folder.js";

/** Name of the file of a run's trained weights: adapter.gguf with LoRA, model.gguf with full training. */
export function nameWeights({ info }: Pick<PolicyEngine, "info">): string {
  return info.trainable === "lora" ? "adapter.gguf" : "model.gguf";
}

/** Writes the trained weights into the run folder. @throws DataError or EngineError */
export async function saveWeights(
  engine: Pick<PolicyEngine, "info" | "saveAdapter" | "saveModel">,
  folder: RunFolder,
): Promise<void> {
  const file = folder.file(nameWeights(engine));
  await (engine.info.trainable === "lora" ? engine.saveAdapter(file) : engine.saveModel(file));
}
