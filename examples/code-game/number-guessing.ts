// A simpler game, whose interaction also scores single turns: a secret number, found by "Too high." and "Too low.".
import { interaction } from "cria";

export interface NumberGuessingOptions {
  /** Guesses before the game is lost. Default 6. */
  max_guesses?: number;
  /** Score of each wrong guess that was consistent with the answers so far. Default 0. */
  narrowing_score?: number;
  /** Score of a turn without a number, or with one that earlier answers ruled out. Default 0. */
  wasted_score?: number;
  /** Deducted from the winning score for each guess after the first. Default 0. */
  guess_cost?: number;
}

/**
 * The game, as an `interactions.yaml` names it: `class_name: ./number-guessing.ts#numberGuessing`. A row's ground truth is its number. It
 * scores 1 for a win, less `guess_cost` for each guess after the first.
 */
export function numberGuessing(
  { max_guesses = 6, narrowing_score = 0, wasted_score = 0, guess_cost = 0 }: NumberGuessingOptions = {},
  name = "number_guessing",
) {
  return interaction({
    name,
    create: ({ groundTruth }) => ({
      secret: Number(groundTruth),
      guesses: 0,
      low: Number.NEGATIVE_INFINITY,
      high: Number.POSITIVE_INFINITY,
      score: 0,
    }),
    reply: ({ state: game, answer }) => {
      game.guesses++;
      const data = { guesses: game.guesses };
      const guess = parseGuess(answer);
      if (guess === game.secret) {
        game.score = Math.max(0, 1 - guess_cost * (game.guesses - 1));
        return { shouldTerminate: true, content: "Correct!", data };
      }
      const shouldTerminate = game.guesses >= max_guesses;
      if (guess === null) return { shouldTerminate, content: "Please guess a number.", score: wasted_score };
      const isInformed = guess > game.low && guess < game.high;
      const isTooHigh = guess > game.secret;
      if (isTooHigh) game.high = Math.min(game.high, guess);
      else game.low = Math.max(game.low, guess);
      const score = isInformed ? narrowing_score : wasted_score;
      return { shouldTerminate, content: isTooHigh ? "Too high." : "Too low.", score, data };
    },
    score: ({ score }) => score,
  });
}

/** The last number of the text. */
function parseGuess(text: string): number | null {
  const last = text.match(/-?\d+(?:\.\d+)?/g)?.at(-1);
  return last === undefined ? null : Number(last);
}
