import type { ChatMessage, ToolSchema } from "@cria/core";
import {
  type CodeNoise,
  drawCode,
  firstCodeNoise,
  secondCodeNoise,
  writeCodeDemonstration,
} from "./code-demonstrations.js";
import { firstNoise, type NoiseProfile, secondNoise, writeDemonstration } from "./demonstrations.js";
import { calculatorSchema } from "./policy-prompt.js";
import { Random } from "./random.js";
import { drawProblem } from "./word-problems.js";

/** A row of supervised training. */
export interface Dialog {
  messages: ChatMessage[];
  tools: ToolSchema[];
}

export interface StageNoise {
  problems: NoiseProfile;
  codes: CodeNoise;
}

export const firstStage: StageNoise = { problems: firstNoise, codes: firstCodeNoise };
export const secondStage: StageNoise = { problems: secondNoise, codes: secondCodeNoise };

/** One dialog in four is a code game. */
const codeShare = 0.25;

/** Spoiled demonstrations on problems and codes of the training side. */
export function makeCorpus(count: number, seed: number, noise: StageNoise): Dialog[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => {
    if (random.next() < codeShare) {
      return { messages: writeCodeDemonstration(random, drawCode(random, "train"), noise.codes), tools: [] };
    }
    const messages = writeDemonstration(random, drawProblem(random, "train"), noise.problems);
    return { messages, tools: [calculatorSchema] };
  });
}
