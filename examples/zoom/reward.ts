import { findLastAnswer, type RewardFunction } from "cria";

/** 1 for the digit alone as the last answer. */
export const score: RewardFunction = (_source, _text, truth, { messages }) =>
  findLastAnswer(messages).trim() === truth ? 1 : 0;
