// The interaction that answers the policy: a secret code of digits, found by guessing.
import { interaction } from "cria";

/** Whether each digit of the secret is "higher" or "lower" than the guess's, or "right"; null for what is no code of its length. */
export function answerGuess(secret: string, guess: string): string | null {
  if (guess.length !== secret.length || !/^\d+$/.test(guess)) return null;
  return [...guess].map((digit, i) => compareDigits(secret[i]!, digit)).join(" ");
}

function compareDigits(secret: string, guess: string): string {
  if (secret === guess) return "right";
  return secret > guess ? "higher" : "lower";
}

/** The game, as `interactions.yaml` names it. A row's ground truth is its code. It scores 1 when the code was guessed, else 0. */
export function codeGame({ max_guesses: most = 4 }: { max_guesses?: number } = {}, name = "code_game") {
  return interaction({
    name,
    create: ({ groundTruth: secret }) => {
      if (typeof secret !== "string" || !/^\d+$/.test(secret))
        throw new Error(
          `${name}: reward_model.ground_truth must be a text of digits, and is ${JSON.stringify(secret)}`,
        );
      return { secret, guesses: 0, isSolved: false };
    },
    reply: ({ state, answer }) => {
      const guess = answer.trim();
      state.guesses++;
      state.isSolved = guess === state.secret;
      return {
        shouldTerminate: state.isSolved || state.guesses >= most,
        content: answerGuess(state.secret, guess) ?? `A guess is ${state.secret.length} digits.`,
        data: { guesses: state.guesses },
      };
    },
    score: ({ isSolved }) => (isSolved ? 1 : 0),
  });
}
