import { runSft, type SftResult, sftConfigSchema } from "@cria/trainer";
import { fetchAddresses, listAddresses, listMissingPaths } from "@cria/trainer/internal";
import { defineCommand } from "citty";
import { colors as pc } from "../terminal/colors.js";
import { formatCount, formatSeconds } from "../terminal/progress.js";
import { quoteWord } from "../terminal/quote-word.js";
import { showEvents } from "../terminal/show-events.js";
import { findWidth, wrapParagraph } from "../terminal/wrap-text.js";
import { readConfig } from "./read-config.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  config: { type: "positional", description: "YAML config; every key: cria config --of sft", required: true },
  overrides: {
    type: "positional",
    description: "Any number of key.path=value, for example optim.lr=1e-4",
    required: false,
  },
  keep: { type: "string", description: "Filter for the conversations of dumps: 'reward>=1' (data.keep)" },
  ...commonArgs,
} as const;

/** Text below the options in its help. */
export const sftNotes = `A config needs two sections; model.lora_rank above 0 trains an adapter:

  model: { path: model.gguf, lora_rank: 16 }
  data: { train_files: talks.jsonl, val_files: held-out.jsonl }

talks.jsonl has a conversation a line; what the assistant says, and calls, is learned (docs/sft.md, "Conversations"):

  {"messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}], "tools": []}

Conversations of a run can be training data, here those with a high reward of its own or another judge (cria rescore):

  cria sft sft.yaml data.train_files=runs/p/e/rollouts/20.jsonl --keep 'reward>=1 && !truncated'

The same command again resumes from the newest checkpoint. Other keys: optim.lr, trainer.total_epochs, trainer.save_freq,
trainer.test_freq, trainer.logger, trainer.output_path, as in cria train.

Keys of the config: cria config --of sft; one in full: cria config --of sft optim.lr`;

export const sftCommand = defineCommand({
  meta: {
    name: "sft",
    description: "Supervised fine-tuning on conversations, of all weights or of a LoRA adapter",
  },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const keep = given.keep === undefined ? [] : [`data.keep=${JSON.stringify(given.keep)}`];
      const loaded = readConfig(sftConfigSchema, given.config, [...given._.slice(1).map(String), ...keep]);
      const { values, folder } = loaded;
      for (const missing of listMissingPaths(loaded)) throw missing;
      const report = showEvents({ silent: given.json || !values.trainer.logger.includes("console") });
      await fetchAddresses(listAddresses(values), { report, signal });
      const result = await runSft(values, folder, { report, signal });
      if (given.json) console.log(JSON.stringify(result));
      else print(result, values.model.lora_rank > 0);
    }),
});

function print({ output, steps, path, ...result }: SftResult, isLora: boolean): void {
  const { loss, valLoss, conversationTokens: tokens, seconds, tokensPerSecond } = result;
  const heldOut = valLoss === null ? "" : `, held-out loss ${valLoss.toFixed(4)}`;
  const speed = tokensPerSecond > 0 ? `, ${formatSeconds(seconds)}, ${formatCount(tokensPerSecond)} tok/s` : "";
  console.log(`${output}: ${steps} steps, loss ${loss.toFixed(4)}${heldOut}${speed}`);
  console.log(`run folder: ${path}`);
  for (const line of wrapParagraph(describeLoss(valLoss ?? loss, tokens), findWidth())) console.log(line);
  const model = "actor_rollout_ref.model";
  // Rank and alpha are the adapter's; the config may have others.
  const start = isLora
    ? [`${model}.lora_adapter_path=${output}`, `${model}.lora_rank=0`, `${model}.lora_alpha=null`]
    : [`${model}.path=${output}`];
  const next: [string[], string][] = [
    [["chat", path], "chat with it"],
    [["eval", "config.yaml", ...start], "success on a task, before it is trained on rewards"],
    [
      ["train", "config.yaml", ...start],
      `that training; in code: ${isLora ? `lora: { path: "${output}" }` : `model: "${output}"`}`,
    ],
  ];
  console.log(pc.bold("next"));
  for (const [words, what] of next)
    console.log(`  ${["cria", ...words.map(quoteWord)].join(" ")}\n    ${pc.dim(what)}`);
}

/** The meaning of a loss for sampling: the share of conversations that come out as they were shown. */
function describeLoss(loss: number, tokens: number): string {
  const shown = `conversations of ${tokens.toFixed(0)} tokens`;
  const enough = Math.min(0.5, 3 / Math.max(1, tokens));
  if (loss <= enough)
    return `one in ${Math.exp(loss * tokens).toFixed(0)} ${shown} is sampled as it was shown: cria train has something to learn from`;
  return `at a loss of ${Number(enough.toPrecision(2))} one in twenty ${shown} is sampled as it was shown, which cria train can learn from; to go on, raise trainer.total_epochs or optim.lr, and run this again`;
}
