import { fileURLToPath } from "node:url";

export { encode, specialTokens, trainVocabulary, type Vocabulary } from "./bpe.js";
export { makeCalculatorRows } from "./calculator-rows.js";
export {
  codeGame,
  drawCode,
  isHeldOutCode,
  makeCodePrompt,
  secondCodeNoise,
  writeCodeDemonstration,
} from "./code-demonstrations.js";
export { makeCodeGameRows } from "./code-game-rows.js";
export { type Dialog, firstStage, makeCorpus, type StageNoise, secondStage } from "./corpus.js";
export { firstNoise, type NoiseProfile, secondNoise, writeDemonstration } from "./demonstrations.js";
export { describeInitialModel, policyShape } from "./initial-model.js";
export { calculatorSchema, chatTemplate, makePrompt, systemPrompt } from "./policy-prompt.js";
export { Random } from "./random.js";
export { describeTinyProjector } from "./tiny-projector.js";
export { drawProblem, families, isHeldOut, type WordProblem } from "./word-problems.js";

/** The shipped policy. */
export const embeddedPolicyPath = fileURLToPath(new URL("../cria-tiny.gguf", import.meta.url));
