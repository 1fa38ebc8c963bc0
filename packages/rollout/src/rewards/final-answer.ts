import type { RewardFunction } from "./reward-function.js";

/** The number after the last "####", or null. */
export function extractFinalAnswer(text: string): string | null {
  const match = /####\s*(-?[\d.,]+)[^\d]*$/.exec(text.slice(text.lastIndexOf("####")));
  return match ? match[1]!.replace(/,/g, "").replace(/\.$/, "") : null;
}

/** 1 when the text ends with "#### <ground truth>", else 0. */
export const scoreFinalAnswer: RewardFunction = (_source, solution, groundTruth) => {
  const answer = extractFinalAnswer(solution);
  const expected = String(groundTruth).replace(/,/g, "");
  const right = answer !== null && (answer === expected || Number(answer) === Number(expected));
  return { score: right ? 1 : 0, acc: right ? 1 : 0 };
};
