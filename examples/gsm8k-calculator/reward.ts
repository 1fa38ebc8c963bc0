import type { RewardFunction } from "cria";
import { readTurns } from "../learn/calls.js";

/** The number of a last turn that ends with a line `#### 72`; null: it has none, or asks for another sum. */
export function readAnswer(turn: string): number | null {
  const match = /^(?:[^<]*\n)?#### (-?\d+(?:\.\d+)?)$/.exec(turn.trim());
  return match ? Number(match[1]) : null;
}

/** 1 for the right number, and nothing for anything else; `acc` is the same. */
export const score: RewardFunction = (_source, _text, truth, { messages }) => {
  const right = readAnswer(readTurns(messages).at(-1) ?? "") === Number(truth);
  return { score: right ? 1 : 0, acc: right ? 1 : 0 };
};
