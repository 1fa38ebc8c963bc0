// Tests the task without a model: its tool's answers, and the reward of each way to solve it.
import { callTool, playTask } from "cria/testing";
import { describe, expect, it } from "vitest";
import { meteredCalculator, task } from "./task.js";

const call = (expression: string) => callTool("calculator", { expression });

describe("own-tool", () => {
  it("its tool is a function", async () => {
    const state = { calls: 0 };
    expect(await meteredCalculator({ expression: "6*7" }, { state })).toMatchObject({ text: "42", reward: 0 });
    expect(await meteredCalculator({ expression: "1/" }, { state })).toMatchObject({ reward: -0.1 });
    expect(state.calls).toBe(2);
  });

  it("one call earns 1, a second one costs, and no call earns nothing", async () => {
    const once = await playTask(task, [call("86-58"), "#### 28"]);
    expect(once.calls).toEqual([{ name: "calculator", arguments: { expression: "86-58" }, answer: "28" }]);
    expect(once.reward).toBe(1);
    const twice = await playTask(task, [call("86-58"), call("28"), "#### 28"]);
    expect(twice.stepRewards).toEqual([-0.1]);
    expect(twice.reward).toBeCloseTo(0.9);
    expect((await playTask(task, ["#### 28"])).reward).toBe(0);
  });
});
