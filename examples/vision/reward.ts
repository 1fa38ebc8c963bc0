import type { RewardFunction } from "cria";

/** 1 for an answer that is only the digit. */
export const score: RewardFunction = (_source, text, truth) => (text.trim() === truth ? 1 : 0);
