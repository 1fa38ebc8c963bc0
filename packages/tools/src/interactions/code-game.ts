/**
 * Rules of a guessing game: a secret code of digits; each digit of a guess is answered by "higher" or "lower" (the
 * secret's digit is) or "right".
 */

/** The answer to a guess; null when it is not a code of the secret's length. */
export function answerGuess(secret: string, guess: string): string | null {
  if (guess.length !== secret.length || !/^\d+$/.test(guess)) return null;
  return [...guess].map((digit, i) => compareDigits(secret[i]!, digit)).join(" ");
}

function compareDigits(secret: string, guess: string): string {
  if (secret === guess) return "right";
  return secret > guess ? "higher" : "lower";
}
