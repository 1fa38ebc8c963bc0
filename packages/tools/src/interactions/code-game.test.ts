import { describe, expect, it } from "vitest";
import { answerGuess, CodeGameInteraction } from "../index.js";

describe("the code game", () => {
  it("answers each digit, and refuses what is not a code of that length", () => {
    expect(answerGuess("0593", "5555")).toBe("lower right higher lower");
    expect(answerGuess("77", "77")).toBe("right right");
    for (const guess of ["", "5", "555", "5x", "5 5", "５５"]) expect(answerGuess("77", guess), guess).toBeNull();
  });

  it("ends with the code or with the last guess; only the code scores", async () => {
    const play = async (guesses: readonly string[]) => {
      const game = new CodeGameInteraction({ max_guesses: 3 });
      await game.startInteraction("id", { ground_truth: "12" });
      const replies = [];
      for (const content of guesses) replies.push(await game.generateResponse("id", [{ role: "assistant", content }]));
      const score = await game.calculateScore("id");
      await game.finalizeInteraction("id");
      await expect(game.calculateScore("id")).rejects.toMatchObject({
        code: "interaction/unknown-instance",
        subject: "instance id of code_game",
      });
      return { score, ends: replies.map((r) => r.shouldTerminate), texts: replies.map((r) => r.content) };
    };
    expect(await play(["55", " 12\n"])).toEqual({
      score: 1,
      ends: [false, true],
      texts: ["lower lower", "right right"],
    });
    expect(await play(["x", "11", "13"])).toEqual({
      score: 0,
      ends: [false, false, true],
      texts: ["A guess is 2 digits.", "right higher", "right lower"],
    });
    await expect(new CodeGameInteraction().startInteraction("id", { ground_truth: 12 })).rejects.toMatchObject({
      code: "interaction/bad-ground-truth",
      subject: 'interaction "code_game"',
    });
  });
});
