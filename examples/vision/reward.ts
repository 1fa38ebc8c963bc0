import type { RewardFunction } from "cria";

/** 1 for the digit alone. */
export const score: RewardFunction = (_source, text, truth) => (text.trim() === truth ? 1 : 0);
