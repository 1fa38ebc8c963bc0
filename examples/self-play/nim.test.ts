import { advantages, defineTask, Groups } from "cria";
import { playTask } from "cria/testing";
import { describe, expect, it } from "vitest";
import { findBest, type NimRow, nim, readMove } from "./nim.js";

const rows: NimRow[] = [{ stones: 4 }, { stones: 4, opponent: "best" }];
const task = defineTask({ rows, agent: nim });

describe("Nim", () => {
  it("is won by leaving a multiple of three", () => {
    expect([1, 2, 3, 4, 5, 6, 7].map(findBest)).toEqual([1, 2, null, 1, 2, null, 1]);
  });

  it("reads the first digit that is a move, if there are so many stones", () => {
    expect(["2", "#### 41", "3", "", "no"].map((answer) => readMove(answer, 5))).toEqual([2, 1, null, null, null]);
    expect([readMove("2", 1), readMove("1", 1)]).toEqual([null, 1]);
  });

  it("rewards both players, who are one policy", async () => {
    const { trajectory, unused } = await playTask(task, ["1", "2", "1"]);
    expect(unused).toBe(0);
    const turns = trajectory.timeline!.turns.filter(({ call }) => call);
    expect(turns.map(({ call }) => call!.request.role).sort()).toEqual(["first", "first", "second"]);
    expect(trajectory.turnScores.map(({ value }) => value)).toEqual([1, -1]);
    expect(trajectory.extraFields.winning_moves).toBe(1);
  });

  it("scores a game against a player without a mistake", async () => {
    expect(await playTask(task, ["1", "1"], { row: 1 })).toMatchObject({ score: 0, reward: 0 });
    expect(await playTask(task, ["1", "2"], { row: { stones: 5, opponent: "best" } })).toMatchObject({ score: 0 });
    expect(await playTask(task, ["2", "1"], { row: { stones: 5, opponent: "best" } })).toMatchObject({ score: 0 });
    expect(await playTask(task, ["1"], { row: { stones: 1, opponent: "best" } })).toMatchObject({ score: 1 });
  });

  it("gives each player its own advantage, by its own baseline", async () => {
    const games = [await playTask(task, ["1", "2", "1"]), await playTask(task, ["I pass."])];
    const trajectories = games.map(({ trajectory }) => trajectory);
    const { advantages: found, state } = advantages.rae(
      new Groups({ rows: await task.load(), trajectories, temperature: 1, responseLength: 1000 }),
    );
    const byRole = trajectories.map(({ timeline }, i) =>
      timeline!.turns.flatMap(({ call, start, end }) =>
        call ? [[call.request.role, ...new Set(found[i]!.slice(start, end))]] : [],
      ),
    );
    // The first game moves the baseline of "first" to 0.05.
    expect(byRole[0]!.sort()).toEqual([
      ["first", 1],
      ["first", 1],
      ["second", -1],
    ]);
    expect(byRole[1]).toEqual([["first", Math.fround(-1 - 0.05)]]);
    expect(state).toEqual({
      "task/first": expect.closeTo(0.95 * 0.05 - 0.05, 12),
      "task/second": expect.closeTo(-0.05, 12),
    });
  });
});
