import { interaction, tool } from "@cria/tools";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTask } from "../task/task.js";
import { callTool, playTask } from "./play-task.js";

const square = tool({
  name: "square",
  description: "Squares a number.",
  inputSchema: z.object({ x: z.number() }),
  create: () => ({ calls: 0 }),
  execute: ({ x }, { state }) => {
    if (x < 0) throw new RangeError("below 0");
    return { text: String(x * x), reward: ++state.calls > 1 ? -0.25 : 0 };
  },
});

const task = defineTask({
  rows: [
    { question: "3 squared?", truth: "9" },
    { question: "4 squared?", truth: "16" },
  ],
  system: "Use the tool.",
  tools: [square],
  reward: ({ answer, row }) => answer === row.truth,
  // Limit in tokens of the trained model; tokens of a script are bytes.
  maxPromptLength: 8,
  maxResponseLength: 8,
});

describe("playTask", () => {
  it("runs the tools that the script calls, and judges its answers", async () => {
    const played = await playTask(task, [callTool("square", { x: 3 }), "#### 9"]);
    expect(played.calls).toEqual([{ name: "square", arguments: { x: 3 }, answer: "9" }]);
    expect(played).toMatchObject({ score: 1, reward: 1, stepRewards: [], unused: 0 });
    expect(played.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "assistant"]);
    expect(played.trajectory.responseMask).toContain(1);
  });

  it("takes another row, by its place or of one's own", async () => {
    expect((await playTask(task, ["#### 16"], { row: 1 })).score).toBe(1);
    expect((await playTask(task, ["#### 16"])).score).toBe(0);
    const own = { question: "5 squared?", truth: "25" };
    expect((await playTask(task, ["#### 25"], { row: own })).score).toBe(1);
    await expect(playTask(task, ["#### 16"], { row: 2 })).rejects.toMatchObject({ code: "config/bad-value" });
    // @ts-expect-error rows of this task have a truth
    await playTask(task, ["#### 25"], { row: { question: "5 squared?" } });
  });

  it("shows step rewards, and the error text of a tool that throws", async () => {
    const thought = ["Twice, then.", callTool("square", { x: 3 })];
    const played = await playTask(task, [
      callTool("square", { x: 2 }),
      thought,
      callTool("square", { x: -1 }),
      "#### 9",
    ]);
    expect(played.calls.map(({ answer }) => answer)).toEqual(["4", "9", expect.stringContaining("below 0")]);
    expect(played.stepRewards).toEqual([-0.25]);
    expect(played.reward).toBe(0.75);
  });

  it("asks a function for each answer", async () => {
    const asked: number[] = [];
    const played = await playTask(task, ({ turn, text }) => {
      asked.push(turn);
      return turn === 0 ? callTool("square", { x: 3 }) : `#### ${/<tool_response>\n(\d+)/.exec(text)![1]}`;
    });
    expect(asked).toEqual([0, 1]);
    expect(played.score).toBe(1);
  });

  it("reports a script that is too short, and counts its unused answers", async () => {
    await expect(playTask(task, [callTool("square", { x: 3 })])).rejects.toMatchObject({
      code: "testing/script-ended",
    });
    expect((await playTask(task, ["#### 9", "and more"])).unused).toBe(1);
  });

  it("answers as a user does, and reads calls in any format of the task", async () => {
    const guessing = defineTask({
      rows: [{ question: "Guess.", truth: "7" }],
      tools: [square],
      toolFormat: "qwen3_coder",
      interaction: interaction({
        create: ({ groundTruth }) => ({ secret: groundTruth, solved: false }),
        reply: ({ answer, state }) => {
          state.solved = answer === state.secret;
          return state.solved ? { shouldTerminate: true } : "No.";
        },
        score: ({ solved }) => (solved ? 1 : 0),
      }),
    });
    const played = await playTask(guessing, ["6", callTool("square", { x: 1 }), "7"]);
    expect(played.messages.filter(({ role }) => role === "user").map(({ content }) => content)).toContain("No.");
    expect(played).toMatchObject({ score: 1, calls: [{ name: "square", answer: "1" }] });
  });

  it("passes errors of a reward on", async () => {
    const broken = defineTask({
      rows: [{ question: "?" }],
      reward: () => {
        throw new TypeError("no such column");
      },
    });
    await expect(playTask(broken, ["4"])).rejects.toThrow("no such column");
  });

  it("ends by a signal, and frees the tools' resources", async () => {
    const released: number[] = [];
    const counter = tool({
      name: "count",
      description: "Counts.",
      inputSchema: {},
      create: () => 1,
      execute: () => "1",
      release: (state) => void released.push(state),
    });
    const counted = defineTask({ rows: [{ question: "?" }], tools: [counter], reward: () => 1 });
    await playTask(counted, ["4"]);
    expect(released).toEqual([1]);
    const signal = AbortSignal.abort(new RangeError("enough"));
    await expect(playTask(counted, ["4"], { signal })).rejects.toThrow("enough");
  });
});
