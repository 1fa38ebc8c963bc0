import { type ChatMessage, findLastAnswer, ToolError } from "@cria/core";
import { z } from "zod";
import { InstanceStore } from "../instance-store.js";
import { BaseInteraction, type InteractionReply, type StartKwargs } from "./base-interaction.js";
import { answerGuess } from "./code-game.js";
import { readConfig } from "./read-config.js";

const configSchema = z.looseObject({
  /** Guesses before the game is lost. */
  max_guesses: z.int().positive().default(4),
});

interface Instance {
  secret: string;
  guesses: number;
  solved: boolean;
}

/**
 * A secret code to guess: each digit of a guess is answered by "higher", "lower" or "right". The ground truth is the
 * code, a text of digits. Calculated score: 1 when it was guessed, else 0.
 */
export class CodeGameInteraction extends BaseInteraction {
  private readonly instances: InstanceStore<Instance>;
  private readonly maxGuesses: number;

  constructor(config: Record<string, unknown> = {}, name = "code_game") {
    super(config, name);
    this.maxGuesses = readConfig(configSchema, config, name).max_guesses;
    this.instances = new InstanceStore(name);
  }

  async startInteraction(instanceId: string, kwargs: StartKwargs = {}): Promise<void> {
    const secret = kwargs.ground_truth;
    if (typeof secret !== "string" || !/^\d+$/.test(secret)) {
      throw new ToolError("needs a code to be guessed", {
        code: "interaction/bad-ground-truth",
        subject: `interaction "${this.name}"`,
        expected: "reward_model.ground_truth: a text of digits",
        received: JSON.stringify(secret) ?? "nothing",
      });
    }
    this.instances.start(instanceId, { secret, guesses: 0, solved: false });
  }

  async generateResponse(instanceId: string, messages: readonly ChatMessage[]): Promise<InteractionReply> {
    const game = this.instances.get(instanceId);
    const guess = findLastAnswer(messages).trim();
    game.guesses++;
    game.solved = guess === game.secret;
    const answer = answerGuess(game.secret, guess) ?? `A guess is ${game.secret.length} digits.`;
    const shouldTerminate = game.solved || game.guesses >= this.maxGuesses;
    return { shouldTerminate, content: answer, score: 0, data: { guesses: game.guesses } };
  }

  override async calculateScore(instanceId: string): Promise<number> {
    return this.instances.get(instanceId).solved ? 1 : 0;
  }

  async finalizeInteraction(instanceId: string): Promise<void> {
    this.instances.end(instanceId);
  }
}
