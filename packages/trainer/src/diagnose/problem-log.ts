import { z } from "zod";
import { sortFindings } from "./find-problems.js";
import type { Finding } from "./finding.js";

/** The log's file in a run folder. */
export const PROBLEMS = "problems.json";

/** Findings of a run by rule, with the steps at which they held: problems that have passed are kept, too. */
export class ProblemLog {
  private readonly found = new Map<string, Finding>();

  /** @param known content of an earlier log; anything else counts as empty. @param last the last step that counts. */
  constructor(known: unknown = [], last = Number.POSITIVE_INFINITY) {
    for (const finding of z.array(findingSchema).safeParse(known).data ?? []) {
      const steps = finding.steps.flatMap(([from, to]): [number, number][] =>
        from <= last ? [[from, Math.min(to, last)]] : [],
      );
      if (steps.length > 0) this.found.set(finding.rule, { ...finding, steps });
    }
  }

  /** Records the findings after a step. */
  note(step: number, findings: readonly Finding[]): void {
    for (const finding of findings) this.found.set(finding.rule, { ...finding, steps: this.addStep(finding, step) });
  }

  /** All findings, for a file. */
  get all(): Finding[] {
    return [...this.found.values()];
  }

  /** Current and earlier findings, by severity; current ones first within a severity. */
  list(now: readonly Finding[]): Finding[] {
    const rules = new Set(now.map(({ rule }) => rule));
    const past = this.all.filter(({ rule }) => !rules.has(rule));
    return sortFindings([
      ...now.map((finding) => ({ ...finding, steps: this.addStep(finding, finding.steps.at(-1)![1]) })),
      ...past.map((finding) => ({ ...finding, holds: false, sentence: tellWhen(finding) })),
    ]);
  }

  private addStep({ rule }: Finding, step: number): [number, number][] {
    const steps = this.found.get(rule)?.steps ?? [];
    const [from, to] = steps.at(-1) ?? [step, step];
    if (step <= to && steps.length > 0) return steps;
    // Consecutive judged steps form one range.
    return step === to + 1 || steps.length === 0 ? [...steps.slice(0, -1), [from, step]] : [...steps, [step, step]];
  }
}

/** "It is so (at steps 14 and 26 to 30, no longer)." */
function tellWhen({ sentence, steps }: Finding): string {
  const shown = steps.slice(-3).map(([from, to]) => (from === to ? `${from}` : `${from} to ${to}`));
  const list = shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}` : shown[0];
  const isOne = steps.length === 1 && steps[0]![0] === steps[0]![1];
  const more = steps.length > shown.length ? "among others " : "";
  return `${sentence.replace(/\.$/, "")} (${more}at step${isOne ? "" : "s"} ${list}, no longer).`;
}

const step = z.int();
const findingSchema = z.object({
  rule: z.string(),
  severity: z.enum(["high", "medium", "low"]),
  sentence: z.string(),
  remedy: z.string(),
  keys: z.array(z.string()),
  evidence: z.array(
    z.object({
      dump: z.string(),
      filter: z.string().nullable(),
      conversations: z.array(z.object({ uid: z.string(), sample: z.number() })),
    }),
  ),
  steps: z.array(z.tuple([step, step])),
  holds: z.boolean(),
});
