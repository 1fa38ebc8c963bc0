import type { GroupOutput } from "./group-prompt.js";
import { JudgementError } from "./reward-model.js";

export interface GroupFormat {
  output: GroupOutput;
  minScore: number;
  maxScore: number;
}

/**
 * Parses the scores in a verdict on a group: a JSON array with one object per attempt, `{"id", "rank"}` or `{"id",
 * "score"}`. Thoughts (`<think>`) may precede it, and a fence may surround it. Of `count` attempts, rank r is worth
 * (count - r) / (count - 1), or 1 for a single attempt; scores are scaled from `minScore`..`maxScore` to 0..1.
 * @returns the scores by id, all in [0, 1].
 * @throws JudgementError when the verdict is anything else.
 */
export function parseGroup(verdict: string, count: number, { output, minScore, maxScore }: GroupFormat): number[] {
  const refuse = (summary: string) =>
    new JudgementError(summary, { code: "reward/bad-verdict", subject: "verdict on the group", verdict });
  const said = verdict.replace(/^[\s\S]*<\/think>/, "").trim();
  const text = /^```(?:json)?\s*([\s\S]*?)\s*```$/.exec(said)?.[1] ?? said;
  let entries: unknown;
  try {
    entries = JSON.parse(text);
  } catch {
    throw refuse(`is no JSON: ${shorten(text)}`);
  }
  if (!Array.isArray(entries) || entries.length !== count)
    throw refuse(`is not an array of ${count} objects: ${shorten(text)}`);
  const key = output === "ranks" ? "rank" : "score";
  const scores = new Array<number | undefined>(count).fill(undefined);
  for (const entry of entries as unknown[]) {
    if (typeof entry !== "object" || entry === null)
      throw refuse(`has an entry that is no object with id and ${key}: ${shorten(JSON.stringify(entry))}`);
    const { id, [key]: value } = entry as Record<string, unknown>;
    const place = typeof id === "string" ? Number(id) : id;
    if (typeof place !== "number" || !Number.isInteger(place) || place < 1 || place > count)
      throw refuse(`has an id that no attempt has: ${shorten(JSON.stringify(entry))}`);
    if (scores[place - 1] !== undefined) throw refuse(`has the id ${place} twice`);
    if (typeof value !== "number" || !isInRange(value)) throw refuse(describeRange(entry));
    scores[place - 1] =
      output === "ranks" ? (count > 1 ? (count - value) / (count - 1) : 1) : (value - minScore) / (maxScore - minScore);
  }
  return scores as number[];

  function isInRange(value: number): boolean {
    if (output === "ranks") return Number.isInteger(value) && value >= 1 && value <= count;
    return value >= minScore && value <= maxScore;
  }

  function describeRange(entry: unknown): string {
    const [from, to] = output === "ranks" ? [1, count] : [minScore, maxScore];
    return `has no ${key} from ${from} to ${to}: ${shorten(JSON.stringify(entry))}`;
  }
}

/** A grammar (GBNF) of verdicts that `parseGroup` accepts: the ids in order, and only ranks or scores within range. */
export function makeGroupGrammar(count: number, format: GroupFormat): string {
  const key = format.output === "ranks" ? "rank" : "score";
  const items = Array.from({ length: count }, (_, i) => `"{\\"id\\": ${i + 1}, \\"${key}\\": " value "}"`);
  const values = format.output === "ranks" ? listSteps(1, count, count - 1) : listScores(format);
  return `root ::= "[" ${items.join(' ", " ')} "]"\nvalue ::= ${values.map((value) => `"${value}"`).join(" | ")}\n`;
}

/** Whole numbers if the range has between three and a thousand of them; else hundredths of the range. */
function listScores({ minScore, maxScore }: GroupFormat): number[] {
  const span = maxScore - minScore;
  const isWhole = Number.isInteger(minScore) && Number.isInteger(span) && span >= 2 && span <= 1000;
  return listSteps(minScore, maxScore, isWhole ? span : 100);
}

/** Equidistant numbers from `from` to `to`, inclusive. */
function listSteps(from: number, to: number, steps: number): number[] {
  return Array.from({ length: steps + 1 }, (_, i) => {
    const value = i === steps ? to : from + (i * (to - from)) / steps;
    return Number(value.toPrecision(6));
  });
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > 120 ? `${line.slice(0, 120)}...` : line;
}
