import type { ChatMessage } from "cria";
import { describe, expect, it } from "vitest";
import { numberGuessing } from "./number-guessing.js";

/** Plays a game, guess by guess, until the interaction ends it. */
async function play(game: ReturnType<typeof numberGuessing>, ground_truth: unknown, guesses: readonly string[]) {
  const messages: ChatMessage[] = [{ role: "user", content: "Guess." }];
  const replies = [];
  await game.startInteraction("id", { ground_truth });
  for (const content of guesses) {
    messages.push({ role: "assistant", content });
    const reply = await game.generateResponse("id", messages);
    replies.push(reply);
    if (reply.shouldTerminate) break;
    messages.push({ role: "user", content: reply.content });
  }
  const score = await game.calculateScore("id");
  await game.finalizeInteraction("id");
  return { replies, score };
}

describe("number guessing", () => {
  it("says too high and too low, and scores turns, and a win by its guesses", async () => {
    const game = numberGuessing({ guess_cost: 0.1, narrowing_score: 0.01, wasted_score: -0.02 });
    const { replies, score } = await play(game, "42", ["50", "hm", "20", "60?", "I say 42!"]);
    const texts = ["Too high.", "Please guess a number.", "Too low.", "Too high.", "Correct!"];
    expect(replies.map(({ content }) => content)).toEqual(texts);
    expect(replies.map(({ score }) => score)).toEqual([0.01, -0.02, 0.01, -0.02, 0]);
    expect(score).toBeCloseTo(0.6);
  });

  it("is lost after the last guess", async () => {
    expect(await play(numberGuessing({ max_guesses: 2 }), 5, ["1", "2", "5"])).toMatchObject({
      score: 0,
      replies: [{ shouldTerminate: false }, { shouldTerminate: true }],
    });
  });
});
