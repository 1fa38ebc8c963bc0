import type { ChatMessage } from "@cria/core";
import { hashSeed } from "@cria/core";
import type { Random } from "./random.js";

/** The code game as the policy sees it: digits, up to `guesses` guesses, an answer after each. */
export const codeGame = {
  digits: 4,
  guesses: 4,
  system: "You guess a secret code of 4 digits.",
  start: "Guess.",
} as const;

/** One code in eight is never a secret in demonstrations or in training. */
export function isHeldOutCode(code: string): boolean {
  return hashSeed(0, "code", code) % 8 === 0;
}

export function drawCode(random: Random, side: "train" | "heldOut"): string {
  for (;;) {
    const code = Array.from({ length: codeGame.digits }, () => random.integer(0, 9)).join("");
    if (isHeldOutCode(code) === (side === "heldOut")) return code;
  }
}

export function makeCodePrompt(): ChatMessage[] {
  return [
    { role: "system", content: codeGame.system },
    { role: "user", content: codeGame.start },
  ];
}

/**
 * Binary search in 0 to 9: each digit is the middle of the range that the answers so far leave. At most four guesses.
 */
const nextDigit: Record<string, Record<string, string>> = {
  "5": { lower: "2", higher: "8" },
  "2": { lower: "1", higher: "3" },
  "8": { lower: "6", higher: "9" },
  "1": { lower: "0" },
  "3": { higher: "4" },
  "6": { higher: "7" },
};

/** Mistakes in demonstrations of games, as shares of all. The rest follows the answers, with occasional slips. */
export interface CodeNoise {
  /** Every answer is followed. */
  follow: number;
  /** The guess is repeated, regardless of the answer. */
  repeat: number;
}

export const firstCodeNoise: CodeNoise = { follow: 0.6, repeat: 0.2 };
export const secondCodeNoise: CodeNoise = { follow: 0.27, repeat: 0.58 };
const slips = 0.3;

/** A whole game. */
export function writeCodeDemonstration(random: Random, secret: string, noise: CodeNoise): ChatMessage[] {
  const messages = makeCodePrompt();
  const kind = random.next();
  let guess = "5".repeat(codeGame.digits);
  for (let turn = 1; ; turn++) {
    messages.push({ role: "assistant", content: guess });
    if (guess === secret || turn === codeGame.guesses) return messages;
    const answer = answerGuess(secret, guess);
    messages.push({ role: "user", content: answer });
    if (kind < noise.repeat) continue;
    const slipping = kind >= noise.repeat + noise.follow;
    const answers = answer.split(" ");
    guess = [...guess]
      .map((digit, i) => {
        if (slipping && random.next() < slips) return String(random.integer(0, 9));
        return nextDigit[digit]?.[answers[i]!] ?? digit;
      })
      .join("");
  }
}

/** As `examples/code-game` answers; it says what an answer is. */
export function answerGuess(secret: string, guess: string): string {
  const answer = (digit: string, i: number) =>
    secret[i] === digit ? "right" : secret[i]! > digit ? "higher" : "lower";
  return [...guess].map(answer).join(" ");
}
