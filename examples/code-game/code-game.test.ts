import { defineTask } from "cria";
import { playTask } from "cria/testing";
import { describe, expect, it } from "vitest";
import { answerGuess, codeGame } from "./code-game.js";

const task = defineTask({
  rows: [{ question: "Guess.", truth: "12" }],
  interaction: codeGame({ max_guesses: 3 }),
  truth: (row) => row.truth,
});

describe("the code game", () => {
  it("answers each digit, and refuses a wrong length of the code", () => {
    expect(answerGuess("0593", "5555")).toBe("lower right higher lower");
    expect(answerGuess("77", "77")).toBe("right right");
    for (const guess of ["", "5", "555", "5x", "5 5", "５５"]) expect(answerGuess("77", guess), guess).toBeNull();
  });

  it("ends with the code or with the last guess; only the code scores", async () => {
    const heard = ({ messages }: Awaited<ReturnType<typeof playTask>>) =>
      messages.filter(({ role }) => role === "user").map(({ content }) => content);
    const won = await playTask(task, ["55", " 12\n"]);
    expect(won).toMatchObject({ reward: 1, unused: 0 });
    expect(heard(won).slice(1)).toEqual(["lower lower"]);
    const lost = await playTask(task, ["x", "11", "13", "12"]);
    expect(lost).toMatchObject({ reward: 0, unused: 1 });
    expect(heard(lost).slice(1)).toEqual(["A guess is 2 digits.", "right higher"]);
  });
});
