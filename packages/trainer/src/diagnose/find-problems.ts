import type { StepMetrics } from "../step-metrics.js";
import type { Finding } from "./finding.js";
import { rules } from "./rules.js";
import { type RunContext, RunHistory, WINDOW } from "./run-history.js";

const order = { high: 0, medium: 1, low: 2 };

/**
 * Finds the problems of a run, by severity, then by likelihood; none for a run that learns, has learned, or is too
 * short to judge.
 * @param history metrics of its steps and validations, in order.
 */
export function findProblems(history: readonly StepMetrics[], context: RunContext): Finding[] {
  const run = new RunHistory(history, context);
  if (run.steps.length < (context.fewest ?? WINDOW)) return [];
  const remarks = rules
    .filter(({ isOfRewards }) => !isOfRewards || !run.isTaughtAlone)
    .flatMap(({ name, look }) => {
      const remark = look(run);
      return remark ? [{ rule: name, ...remark }] : [];
    })
    .sort((a, b) => order[a.severity] - order[b.severity] || b.weight - a.weight);
  const first = remarks.find(({ isCause }) => isCause);
  return remarks.map((remark) => {
    const { rule, severity, sentence, remedy, keys, filter } = remark;
    const symptom = remark === first && run.silence !== null ? `${run.silence}; likely because ` : "";
    return {
      rule,
      severity,
      sentence: `${symptom === "" ? capitalize(sentence) : symptom + sentence}.`,
      remedy: `${remedy}.`,
      keys,
      evidence: [{ dump: String(run.lastStep), filter, conversations: [] }],
      steps: [[run.lastStep, run.lastStep]],
      holds: true,
    };
  });
}

/** Sorts by severity, the highest first; equal ones keep their order. */
export function sortFindings(findings: readonly Finding[]): Finding[] {
  return [...findings].sort((a, b) => order[a.severity] - order[b.severity]);
}

const capitalize = (text: string) => text[0]!.toUpperCase() + text.slice(1);
