import type { MetricSection } from "../metric.js";

export const criticMetrics: MetricSection = {
  title: "Critic",
  intro: "These exist where the estimator has a critic.",
  metrics: [
    { name: "critic/values/{mean,max,min}", unit: "reward", meaning: "values of sampled tokens before the update" },
    { name: "critic/vf_loss", meaning: "the clipped value loss, mean over the updates" },
    { name: "critic/vpred_mean", unit: "reward", meaning: "mean of the values in the updates" },
    { name: "critic/vf_clipfrac", unit: "share", meaning: "share of tokens whose clipped term is the larger" },
    {
      name: "critic/vf_explained_var",
      meaning: "1 - Var(returns - values) / Var(returns): 1 is a perfect critic, 0 a constant",
    },
    { name: "critic/grad_norm", meaning: "norm of the critic's gradient before clipping, mean over the updates" },
    { name: "critic/lr", meaning: "learning rate of the critic" },
  ],
};
