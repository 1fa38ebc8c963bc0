export const toolsTemplate = `tools:
  - class_name: ./tool.ts#MyTool
`;

export function makeInteractionsFile(name: string): string {
  return `interaction:
  # Rows whose data_source is "${name}" talk to it.
  - name: ${name}
    class_name: ./interaction.ts#MyInteraction
    config:
      max_attempts: 2
`;
}

/** @param modelPath of a GGUF, seen from the config's folder or absolute. */
export function makeConfig(name: string, modelPath: string): string {
  return `# Every key: see the README of cria. Override any from the command line: key.path=value.
actor_rollout_ref:
  model:
    path: ${JSON.stringify(modelPath)}
    lora_rank: 16
    lora_alpha: 32
  actor:
    optim:
      lr: 1.5e-3
      lr_warmup_steps: 3
    ppo_mini_batch_size: 8
  rollout:
    n: 8
    prompt_length: 120
    response_length: 160
    max_num_seqs: 64
    multi_turn:
      max_assistant_turns: 5
      tool_config_path: tools.yaml
      interaction_config_path: interaction.yaml
      max_tool_response_length: 40
data:
  train_files: data/train.jsonl
  val_files: data/val.jsonl
  train_batch_size: 8
  max_prompt_length: 120
  max_response_length: 160
trainer:
  project_name: ${name}
  experiment_name: first
  total_training_steps: 20
`;
}
