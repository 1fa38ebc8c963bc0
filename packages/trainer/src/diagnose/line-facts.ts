import type { StepMetrics } from "../step-metrics.js";
import { average } from "./average.js";

/** Facts that follow from the metric names of a line. */
export interface LineFacts {
  /** Success of the line's validation: accuracy if judged, else the reward; null without a validation. */
  heldOut: number | null;
  /** Names of the parts of scores. */
  parts: readonly string[];
}

/** Cached, because a running training asks about all of its lines after each step. Lines do not change. */
const known = new WeakMap<StepMetrics, LineFacts>();

export function readFacts(line: StepMetrics): LineFacts {
  const facts = known.get(line) ?? findFacts(line);
  known.set(line, facts);
  return facts;
}

function findFacts(line: StepMetrics): LineFacts {
  const read = (kind: string) =>
    average(Object.entries(line).flatMap(([name, value]) => (isCore(name, kind) ? value : [])));
  return {
    heldOut: read("acc") ?? read("reward"),
    parts: Object.keys(line).flatMap((name) => /^reward_part\/(.+)\/std$/s.exec(name)?.[1] ?? []),
  };
}

/** True for validation metrics: of one sample per prompt, or the mean over several. */
function isCore(name: string, kind: string): boolean {
  return /^val-(core|aux)\//.test(name) && new RegExp(`/${kind}/mean@\\d+$`).test(name);
}
