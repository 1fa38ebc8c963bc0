import { type ChatMessage, findLastAnswer } from "@cria/core";
import { z } from "zod";
import { InstanceStore } from "../instance-store.js";
import { BaseInteraction, type InteractionReply, type StartKwargs } from "./base-interaction.js";
import { readConfig } from "./read-config.js";

const configSchema = z.looseObject({
  /** Guesses before the game is lost. */
  max_guesses: z.int().positive().default(6),
  /** Score of each wrong guess that was consistent with the answers so far. */
  narrowing_score: z.number().default(0),
  /** Score of a turn without a number, or with one that earlier answers ruled out. */
  wasted_score: z.number().default(0),
  /** Deducted from the winning score for each guess after the first. */
  guess_cost: z.number().min(0).default(0),
});

interface Instance {
  secret: number;
  guesses: number;
  low: number;
  high: number;
  score: number;
}

/**
 * The game of "too high" and "too low". Calculated score: 1 for a win, less `guess_cost` for each guess after the
 * first.
 */
export class NumberGuessingInteraction extends BaseInteraction {
  private readonly instances: InstanceStore<Instance>;
  private readonly settings: z.infer<typeof configSchema>;

  constructor(config: Record<string, unknown> = {}, name = "number_guessing") {
    super(config, name);
    this.settings = readConfig(configSchema, config, name);
    this.instances = new InstanceStore(name);
  }

  async startInteraction(instanceId: string, kwargs: StartKwargs = {}): Promise<void> {
    this.instances.start(instanceId, {
      secret: Number(kwargs.ground_truth),
      guesses: 0,
      low: Number.NEGATIVE_INFINITY,
      high: Number.POSITIVE_INFINITY,
      score: 0,
    });
  }

  async generateResponse(instanceId: string, messages: readonly ChatMessage[]): Promise<InteractionReply> {
    const { max_guesses, narrowing_score, wasted_score, guess_cost } = this.settings;
    const game = this.instances.get(instanceId);
    game.guesses++;
    const guess = parseGuess(findLastAnswer(messages));
    if (guess === game.secret) {
      game.score = Math.max(0, 1 - guess_cost * (game.guesses - 1));
      return { shouldTerminate: true, content: "Correct!", score: 0, data: { guesses: game.guesses } };
    }
    const shouldTerminate = game.guesses >= max_guesses;
    if (guess === null) return { shouldTerminate, content: "Please guess a number.", score: wasted_score };
    const informed = guess > game.low && guess < game.high;
    const tooHigh = guess > game.secret;
    if (tooHigh) game.high = Math.min(game.high, guess);
    else game.low = Math.max(game.low, guess);
    return {
      shouldTerminate,
      content: tooHigh ? "Too high." : "Too low.",
      score: informed ? narrowing_score : wasted_score,
      data: { guesses: game.guesses },
    };
  }

  override async calculateScore(instanceId: string): Promise<number> {
    return this.instances.get(instanceId).score;
  }

  async finalizeInteraction(instanceId: string): Promise<void> {
    this.instances.end(instanceId);
  }
}

/** The last number of the text. */
function parseGuess(text: string): number | null {
  const last = text.match(/-?\d+(?:\.\d+)?/g)?.at(-1);
  return last === undefined ? null : Number(last);
}
