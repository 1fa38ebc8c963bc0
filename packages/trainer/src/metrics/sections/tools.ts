import type { MetricSection } from "../metric.js";

export const toolsMetrics: MetricSection = {
  title: "Metrics of tools and interactions",
  intro:
    "What a tool returns in `metrics`, and an interaction as numbers in `data`. They stand under the tool's or interaction's name and can hide no counter above. A mean is over the answers: the calls of that tool that gave one, the turns of that interaction. An answer without the metric counts as 0.",
  metrics: [
    {
      name: "tool/<tool>/<metric>/mean",
      meaning: "e.g. `tool/calculator/invalid_expression/mean`, `tool/code_interpreter/code_ok/mean`",
    },
    { name: "interaction/<interaction>/<metric>/mean", meaning: "e.g. `interaction/gsm8k/solved/mean`" },
    { name: "agent_loop/tool_answers/<tool>/mean", unit: "answers", meaning: "answers of that tool in a conversation" },
    {
      name: "agent_loop/tool_errors/<tool>/mean",
      unit: "calls",
      meaning: "its calls that gave no ordinary answer; calls of tools that do not exist are nobody's",
    },
    {
      name: "agent_loop/interaction_answers/<interaction>/mean",
      unit: "answers",
      meaning: "answers of that interaction in a conversation",
    },
  ],
};
