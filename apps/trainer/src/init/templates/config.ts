import { stringify } from "yaml";
import type { ModelFit } from "../fit-config.js";

export const toolsTemplate = `tools:
  - class_name: ./tool.ts#myTool
`;

export function makeInteractionsFile(name: string): string {
  return `interaction:
  # Rows whose data_source is "${name}" talk to it.
  - name: ${name}
    class_name: ./interaction.ts#myInteraction
`;
}

export interface ConfigParts {
  name: string;
  /** A GGUF, relative to the config's folder or absolute, or an address. */
  modelPath: string;
  /** Its projector, likewise; null: the model reads only text. */
  mmproj: string | null;
  fit: ModelFit;
  /** Lines of comments about the model. */
  remarks: readonly string[];
  /** The judge: interaction.yaml, or reward.ts. */
  judge: "interaction" | "reward";
}

export function makeConfig({ name, modelPath, mmproj, fit, remarks, judge }: ConfigParts): string {
  const { promptLength, responseLength } = fit;
  const kwargs = Object.keys(fit.templateKwargs).length > 0 ? oneLine(fit.templateKwargs) : null;
  return lines(
    "# Every key: cria config. Override any from the command line: key.path=value.",
    ...remarks.map((remark) => `# ${remark}`),
    "actor_rollout_ref:",
    "  model:",
    `    path: ${JSON.stringify(modelPath)}`,
    mmproj !== null && `    mmproj: ${JSON.stringify(mmproj)}`,
    "    lora_rank: 16",
    "    lora_alpha: 32",
    "    target_modules: all-linear",
    "  actor:",
    "    optim:",
    `      lr: ${fit.learningRate.toExponential()}`,
    "      lr_warmup_steps: 3",
    "    ppo_mini_batch_size: 8",
    "  rollout:",
    "    n: 8",
    `    prompt_length: ${promptLength}`,
    `    response_length: ${responseLength}`,
    `    max_num_seqs: ${fit.maxNumSeqs}`,
    "    multi_turn:",
    `      format: ${fit.format}`,
    "      max_assistant_turns: 5",
    "      tool_config_path: tools.yaml",
    judge === "interaction" && "      interaction_config_path: interaction.yaml",
    `      max_tool_response_length: ${fit.toolResponseLength}`,
    "data:",
    "  train_files: data/train.jsonl",
    "  val_files: data/val.jsonl",
    "  train_batch_size: 8",
    `  max_prompt_length: ${promptLength}`,
    `  max_response_length: ${responseLength}`,
    kwargs && `  apply_chat_template_kwargs: ${kwargs} # true: give it a longer response_length`,
    judge === "reward" && "custom_reward_function:",
    judge === "reward" && "  path: reward.ts",
    "trainer:",
    `  project_name: ${name}`,
    "  experiment_name: first",
    "  total_training_steps: 20",
  );
}

function lines(...given: (string | false | null)[]): string {
  return given
    .filter((line) => typeof line === "string")
    .map((line) => `${line}\n`)
    .join("");
}

function oneLine(value: unknown): string {
  return stringify(value, { collectionStyle: "flow", lineWidth: 0 }).trim();
}
