import type { ChatMessage } from "@cria/core";
import { type NoiseProfile, writeDemonstration } from "./demonstrations.js";
import { Random } from "./random.js";
import { drawProblem } from "./word-problems.js";

/** Spoiled demonstrations on problems of the training side. */
export function makeCorpus(count: number, seed: number, noise: NoiseProfile): ChatMessage[][] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => writeDemonstration(random, drawProblem(random, "train"), noise));
}
