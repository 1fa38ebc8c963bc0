import type { StepMetrics } from "../step-metrics.js";
import { average } from "./average.js";

/** What the names in a line of metrics say. */
export interface LineFacts {
  /** Success of the line's validation: accuracy where it is judged, else the reward; null without one. */
  heldOut: number | null;
  /** The parts that scores are made of. */
  parts: readonly string[];
}

/** A running training asks about all of its lines after each step: each is looked through once. Lines do not change. */
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

/** Of a validation of one sample a prompt, or the mean over several. */
function isCore(name: string, kind: string): boolean {
  return /^val-(core|aux)\//.test(name) && new RegExp(`/${kind}/mean@\\d+$`).test(name);
}
