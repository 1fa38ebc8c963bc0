import type { MetricSection } from "../metric.js";

export const validationMetrics: MetricSection = {
  title: "Validation",
  metrics: [
    {
      name: "val-core/<source>/{acc,reward}/{mean@<n>,best@<n>/mean,worst@<n>/mean,maj@<n>/mean}",
      meaning: "what is judged, of n samples of a prompt: mean; best, worst and majority vote over 1000 resamples of n",
    },
    {
      name: "val-core/<source>/failed_ratio",
      unit: "share",
      meaning: "share of conversations that failed, and are in no other number",
    },
    {
      name: "val-aux/<source>/<key>/<statistic>",
      meaning:
        "the same statistics at smaller sizes, their spreads (`std@<n>`, `/std`), and of every other number that the reward function gives",
    },
    { name: "val-aux/num_turns/{mean,max,min}", unit: "turns", meaning: "turns of the conversations, as above" },
    {
      name: "val-aux/agent_loop/{<counter>/mean,tool_error_rate}",
      meaning: "the counters of agent loops, of the validation's conversations",
    },
    { name: "val-aux/{tool,interaction}/<name>/<metric>/mean", meaning: "the metrics of its tools and interactions" },
  ],
};
