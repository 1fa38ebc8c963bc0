import type { RewardFunction } from "cria";
import { judge, type Truth } from "../learn/judge.js";

/** 1 for the right calls with the right arguments, in order, and then the right answer. */
export const success: RewardFunction = (_source, _text, truth, { messages }) => {
  const acc = judge(messages, truth as Truth).mistake === null ? 1 : 0;
  return { score: acc, acc };
};

/**
 * 1 for the right calls with the right arguments, in order, and then the right answer. Calls that were right on the way
 * to something else are worth a little, so that a question of two calls teaches before both succeed; `acc` tells
 * success.
 */
export const score: RewardFunction = (_source, _text, truth, { messages }) => {
  const { mistake, calls } = judge(messages, truth as Truth);
  return { score: mistake === null ? 1 : 0.4 * calls, acc: mistake === null ? 1 : 0 };
};
