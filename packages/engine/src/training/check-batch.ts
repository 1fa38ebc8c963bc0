import { EngineError, type LikeliestOptions, type ModelInfo } from "@cria/core";
import type { ImageStore } from "../images/image-store.js";

/** All training inputs are checked here, before the native code sees them. */
export function checkTokens(
  tokenIds: ArrayLike<number>,
  info: ModelInfo,
  images: ImageStore | undefined,
  subject: string,
): Int32Array {
  if (tokenIds.length < 2) {
    throw new EngineError("is too short to score", {
      code: "engine/bad-batch",
      subject,
      expected: "at least 2 tokens",
      received: `${tokenIds.length}`,
    });
  }
  const tokens = Int32Array.from(tokenIds);
  images?.list(tokens, subject);
  const end = images ? Number.POSITIVE_INFINITY : info.vocabSize;
  for (let i = 0; i < tokens.length; i++) {
    if (tokens[i] !== tokenIds[i] || tokens[i]! < 0 || tokens[i]! >= end) {
      throw new EngineError("has a token outside the vocabulary", {
        code: "engine/bad-token",
        subject: `${subject}, token ${i}`,
        expected: `0 to ${info.vocabSize - 1}`,
        received: `${tokenIds[i]}`,
      });
    }
  }
  return tokens;
}

export function checkLength(actual: number, expected: number, subject: string): void {
  if (actual === expected) return;
  throw new EngineError("has a wrong length", {
    code: "engine/bad-batch",
    subject,
    expected: `${expected}, one value for each token`,
    received: `${actual}`,
  });
}

/** Checks that so many tokens can be found in place of each. */
export function checkLikeliest({ count, below }: LikeliestOptions, { vocabSize }: ModelInfo): void {
  const isWithin = (value: number, most: number) => Number.isInteger(value) && value >= 1 && value <= most;
  const refuse = (option: string, most: number, received: number) =>
    new EngineError("is not a number of tokens of the vocabulary", {
      code: "engine/bad-option",
      subject: `score: likeliest.${option}`,
      expected: `1 to ${most}`,
      received: `${received}`,
    });
  if (below !== undefined && !isWithin(below, vocabSize)) throw refuse("below", vocabSize, below);
  if (!isWithin(count, below ?? vocabSize)) throw refuse("count", below ?? vocabSize, count);
}

export function checkTemperature(temperature: number | undefined): number {
  const value = temperature ?? 1;
  if (value > 0 && Number.isFinite(value)) return value;
  throw new EngineError("must be positive: logits are divided by it", {
    code: "engine/bad-option",
    subject: "temperature",
    expected: "a number above 0",
    received: `${temperature}`,
  });
}
