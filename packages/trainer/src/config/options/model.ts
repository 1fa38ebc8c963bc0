import { z } from "zod";
import { rolesSchema } from "../sections/roles.js";
import { targetModulesSchema } from "../sections/target-modules.js";

/** The adapter that is trained. */
export const loraOptions = z.strictObject({
  rank: z
    .int()
    .min(0)
    .default(0)
    .describe("Rank of the LoRA adapter that is trained; 0: full training, of an F32 model."),
  alpha: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe("The adapter is scaled by lora_alpha / lora_rank; null: 16, or that of lora_adapter_path."),
  targets: targetModulesSchema
    .default("all-linear")
    .describe(
      "Layers that the adapter changes: all-linear, or a list by PEFT's names (q_proj) or llama.cpp's (attn_q).",
    ),
  path: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "An adapter GGUF to start from. It sets rank, alpha and layers; the keys for these must be absent or equal.",
    ),
  roles: rolesSchema
    .nullable()
    .default(null)
    .describe(
      "The roles that the policy plays, each with an adapter of its own, that learns from its turns alone; null: one adapter plays all roles.",
    ),
});
