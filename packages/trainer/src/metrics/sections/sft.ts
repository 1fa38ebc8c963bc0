import type { MetricSection } from "../metric.js";

export const sftMetrics: MetricSection = {
  title: "Supervised fine-tuning",
  intro:
    "`cria sft` writes these, and of the others `training/{global_step,epoch}`, `perf/*` and `timing_s/{save_checkpoint,testing}`.",
  metrics: [
    {
      name: "train/loss",
      unit: "nats",
      meaning: "negative mean logprob of the assistants' tokens of the step's batch, over its own tokens",
    },
    { name: "train/loss_tokens", unit: "tokens", meaning: "how many these are" },
    {
      name: "train/grad_norm",
      meaning: "norm of the gradient before clipping; the gradient is divided by the tokens of an average batch",
    },
    { name: "train/lr", meaning: "learning rate" },
    {
      name: "val/loss",
      unit: "nats",
      meaning: "negative mean logprob of the assistants' tokens of `data.val_files`, over all of them, after the step",
    },
    { name: "val/loss_tokens", unit: "tokens", meaning: "how many these are" },
  ],
};
