import type { StepMetrics } from "../step-metrics.js";
import type { Finding } from "./finding.js";
import { rules } from "./rules.js";
import { type RunContext, RunHistory, WINDOW } from "./run-history.js";

const order = { high: 0, medium: 1, low: 2 };

/**
 * What is wrong with a run, the gravest and likeliest first; nothing for one that learns, has learned, or has not gone far enough
 * to tell.
 * @param history metrics of its steps and validations, in order.
 */
export function findProblems(history: readonly StepMetrics[], context: RunContext): Finding[] {
  const run = new RunHistory(history, context);
  if (run.steps.length < (context.fewest ?? WINDOW)) return [];
  return rules
    .flatMap(({ name, look }) => {
      const remark = look(run);
      return remark ? [{ name, remark }] : [];
    })
    .sort(({ remark: a }, { remark: b }) => order[a.severity] - order[b.severity] || b.weight - a.weight)
    .map(({ name, remark: { severity, sentence, remedy, keys, filter } }) => ({
      rule: name,
      severity,
      sentence: `${sentence}.`,
      remedy: `${remedy}.`,
      keys,
      evidence: [{ dump: String(run.lastStep), filter, conversations: [] }],
    }));
}
