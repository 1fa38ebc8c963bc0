import type { MetricSection } from "../metric.js";

export const rescoreMetrics: MetricSection = {
  title: "Judging again",
  intro:
    "`cria rescore` writes these. Of the others it writes rewards by the new judge, `reward_extra/...`, `rollout/{failed,judge_failed,kept}` and the validations' metrics.",
  metrics: [
    {
      name: "rescore/{score,reward,success}_{before,after}/mean",
      meaning: "score, reward and success before and after, over all conversations that it judged",
    },
    { name: "rescore/changed_ratio", unit: "share", meaning: "share of conversations with another score" },
  ],
};
