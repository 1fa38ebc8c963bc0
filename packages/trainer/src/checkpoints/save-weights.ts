import type { PolicyEngine } from "@cria/core";
import { nameForRole, type Role } from "../policy/of-role.js";
import type { RunFolder } from "./run-folder.js";

/** Name of the file of a run's trained weights: adapter.gguf with LoRA, model.gguf with full training. */
export function nameWeights({ info }: Pick<PolicyEngine, "info">): string {
  return info.trainable === "lora" ? "adapter.gguf" : "model.gguf";
}

/** Writes the trained weights into the run folder, in a role's own file if there is one. @throws DataError or EngineError */
export async function saveWeights(
  engine: Pick<PolicyEngine, "info" | "saveAdapter" | "saveModel">,
  folder: RunFolder,
  role: Role = null,
): Promise<void> {
  const file = folder.file(nameForRole(nameWeights(engine), role));
  await (engine.info.trainable === "lora" ? engine.saveAdapter(file) : engine.saveModel(file));
}
