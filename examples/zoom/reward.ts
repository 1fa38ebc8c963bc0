import { findLastAnswer, type RewardFunction } from "cria";

/** 1 for a last answer that is only the digit. */
export const score: RewardFunction = (_source, _text, truth, { messages }) =>
  findLastAnswer(messages).trim() === truth ? 1 : 0;
