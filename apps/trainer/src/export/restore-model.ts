import type { LlamaModel } from "@cria/engine";
import type { Checkpoint } from "@cria/trainer";
import { nameForRole, type Role, restoreEngines } from "@cria/trainer/internal";

/**
 * Gives a model the weights of a checkpoint.
 * @param loading the checkpoint's base model; it is disposed of when the weights cannot be restored.
 * @param role the role whose adapter it gets; null: the only one.
 * @throws DataError or EngineError
 */
export async function restoreModel(
  loading: Promise<LlamaModel>,
  checkpoint: Checkpoint,
  role: Role,
): Promise<LlamaModel> {
  const model = await loading;
  try {
    await restoreEngines(checkpoint, { [nameForRole("actor", role)]: model });
    return model;
  } catch (error) {
    await model.dispose();
    throw error;
  }
}
