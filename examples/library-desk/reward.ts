import type { RewardFunction } from "cria";
import { judge, type Truth } from "../learn/judge.js";

/**
 * 1 for the search with the title, the loan with the id, and then the date; `acc` tells this success. Else 0.1 for each
 * call that was right, less where wrong ones followed: without it, groups in which no conversation gets to the end
 * teach nothing.
 */
export const score: RewardFunction = (_source, _text, truth, { messages }) => {
  const { mistake, calls } = judge(messages, truth as Truth);
  return { score: mistake === null ? 1 : 0.2 * calls, acc: mistake === null ? 1 : 0 };
};
