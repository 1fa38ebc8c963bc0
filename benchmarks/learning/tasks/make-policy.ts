import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { embeddedPolicyPath } from "@cria/models";
import { type ChatMessage, runSft, type ToolSchema } from "cria";
import { loadConfig, sftConfigSchema } from "cria/config";
import { cached } from "../../cache.js";
import { writeLines } from "../../lines.js";

export interface Demonstration {
  messages: ChatMessage[];
  tools: ToolSchema[];
}

export interface PolicyRecipe {
  /** Names the cached folder: another recipe has another name. */
  name: string;
  demonstrations: () => Demonstration[];
  rows: () => Record<"train" | "val", object[]>;
}

/**
 * Teaches the embedded policy a task badly: its demonstrations are spoiled. Full training, one pass over them.
 * @returns "key.path=value" of the policy and the task's rows.
 */
export async function makePolicy({ name, demonstrations, rows }: PolicyRecipe): Promise<string[]> {
  const folder = await cached(`learning-${name}`, async (output) => {
    mkdirSync(output, { recursive: true });
    const made = demonstrations();
    writeLines(join(output, "demonstrations.jsonl"), made);
    for (const [side, list] of Object.entries(rows())) writeLines(join(output, `${side}.jsonl`), list);
    const { values } = loadConfig(sftConfigSchema, join(import.meta.dirname, "sft.yaml"), [
      `model.path=${embeddedPolicyPath}`,
      `data.train_files=${join(output, "demonstrations.jsonl")}`,
      `trainer.default_local_dir=${join(output, "runs")}`,
      `trainer.output_path=${join(output, "policy.gguf")}`,
    ]);
    await runSft(values, output);
  });
  return [
    `actor_rollout_ref.model.path=${join(folder, "policy.gguf")}`,
    `data.train_files=${join(folder, "train.jsonl")}`,
    `data.val_files=${join(folder, "val.jsonl")}`,
  ];
}
