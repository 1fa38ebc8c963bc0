import { existsSync } from "node:fs";
import { join } from "node:path";
import { convertGsm8kRecord, type Gsm8kSplit, readRecords } from "@cria/rollout";
import { calculate, formatNumber } from "@cria/tools";

/** A sum in a solution: the text before it, and the question to the calculator. */
export interface Step {
  text: string;
  expression: string;
  value: string;
}

export interface Problem {
  question: string;
  /** The solution's number, without commas. */
  answer: string;
  /** Null: a solution without sums, or one that the calculator does not reproduce. */
  steps: Step[] | null;
}

/**
 * Reads `train` or `test` of a folder: JSONL as GSM8K is published, or the Parquet files of `cria data gsm8k`.
 * @throws DataError when the file is missing or a record is malformed.
 */
export async function readProblems(folder: string, split: Gsm8kSplit): Promise<Problem[]> {
  const parquet = join(folder, `${split}.parquet`);
  const records = await readRecords(existsSync(parquet) ? parquet : join(folder, `${split}.jsonl`));
  return records.map(({ value, place }, i) => {
    const published = (value as { extra_info?: unknown }).extra_info ?? value;
    const row = convertGsm8kRecord(published, i, place, { shape: "tool", split });
    const { question, answer } = row.extra_info;
    const truth = row.reward_model.ground_truth;
    return { question, answer: truth, steps: readSteps(answer, truth) };
  });
}

/**
 * The sums of a solution, `48/2 = <<48/2=24>>24`, if the calculator finds the same values and the last is the answer.
 */
export function readSteps(solution: string, answer: string): Step[] | null {
  const steps: Step[] = [];
  let at = 0;
  for (const { 0: note, 1: noted, 2: said, index } of solution.matchAll(/<<([^<>=]*)=([^<>=]*)>>/g)) {
    const expression = noted!.replaceAll(" ", "");
    const value = calculate(expression);
    if (value === null || Number(formatNumber(value)) !== Number(said)) return null;
    steps.push({ text: tidy(solution.slice(at, index)), expression, value: formatNumber(value) });
    at = index + note.length;
    at += /^[\d.,]*\d/.exec(solution.slice(at))?.[0].length ?? 0;
  }
  return steps.length > 0 && Number(steps.at(-1)!.value) === Number(answer) ? steps : null;
}

/** Removes the sum that is written out before its note, and the rest of the note's value from its sentence. */
const tidy = (text: string) =>
  text
    .replace(/[\s$€£]*[\d.(][\d\s.,+\-*/x×÷$€£%()]*=\s*[$€£]?\s*$/, "")
    .replace(/^[\s.,]+/, "")
    .trim()
    .replace(/[^\S\n]+/g, " ")
    .replace(/ ?\n\s*/g, "\n");
