import { JudgementError } from "./reward-model.js";

export interface ScoreFormat {
  /** Its first capture group is the score. */
  pattern: RegExp;
  min: number;
  max: number;
}

/**
 * Parses the score in a verdict, scaled from `min`..`max` to 0..1. The pattern's last match counts, because a judge
 * thinks first.
 * @throws JudgementError when there is none, or one out of range.
 */
export function parseScore(verdict: string, { pattern, min, max }: ScoreFormat): number {
  const refuse = (subject: string, summary: string) =>
    new JudgementError(summary, { code: "reward/bad-verdict", subject, verdict });
  const all = new RegExp(pattern.source, [...new Set(`${pattern.flags}g`)].join(""));
  const found = [...verdict.matchAll(all)].at(-1)?.[1];
  if (found === undefined) throw refuse(`verdict "${shorten(verdict)}"`, "has no score");
  const value = Number(found);
  if (Number.isFinite(value) && value >= min && value <= max) return (value - min) / (max - min);
  throw refuse(`score ${found} of a verdict`, `is not from ${min} to ${max}`);
}

/** The end of the text, where the score was expected. */
function shorten(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, " ");
  return line.length > 120 ? `...${line.slice(-120)}` : line;
}
