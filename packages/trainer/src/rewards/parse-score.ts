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
  const all = new RegExp(pattern.source, [...new Set(`${pattern.flags}g`)].join(""));
  const found = [...verdict.matchAll(all)].at(-1)?.[1];
  if (found === undefined) throw new JudgementError(`no score in the verdict "${shorten(verdict)}"`, verdict);
  const value = Number(found);
  if (Number.isFinite(value) && value >= min && value <= max) return (value - min) / (max - min);
  throw new JudgementError(`a score of ${found}, expected ${min} to ${max}`, verdict);
}

/** The end of the text, where the score was expected. */
function shorten(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, " ");
  return line.length > 120 ? `...${line.slice(-120)}` : line;
}
