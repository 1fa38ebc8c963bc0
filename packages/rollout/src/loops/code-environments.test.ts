import { CodeExecutionInteraction, CodeTool } from "@cria/tools";
import { afterAll, describe, expect, it } from "vitest";
import { makeFakeRollout, makeRow } from "../testing/fake-rollout.js";

const tool = new CodeTool({ language: "javascript", num_workers: 1 });
const interaction = new CodeExecutionInteraction({ language: "javascript", timeout: 0.8, num_workers: 1 }, "test");
afterAll(() => Promise.all([tool.dispose(), interaction.dispose()]));

const call = (code: string) =>
  `<tool_call>${JSON.stringify({ name: "code_interpreter", arguments: { code } })}</tool_call>`;
const busy = "const end = Date.now() + 200; while (Date.now() < end); 'right'";

describe("environments that run code", () => {
  it("a call does not time out while it waits for a sandbox", async () => {
    const { run } = makeFakeRollout({
      reply: ({ turn }) => (turn === 0 ? call(busy) : "done"),
      tools: [tool],
      n: 12,
      // There is one sandbox: the last of 12 programs waits for 11 times 0.2 s, and all wait for the sandbox to start.
      multiTurn: { toolTimeoutS: 1.5 },
    });
    const trajectories = await run();
    expect(trajectories.map((t) => t.messages.filter((m) => m.role === "tool").map((m) => m.content))).toEqual(
      Array(12).fill(['"right"']),
    );
  });

  it("an endless loop is failed tests with their score, and no failed conversation", async () => {
    const { run } = makeFakeRollout({
      reply: ({ turn }) => (turn === 0 ? "for (;;);" : "const f = (x) => x;"),
      interactions: [interaction],
      n: 2,
      multiTurn: { toolTimeoutS: 0.3 },
    });
    const test_cases = Array.from({ length: 8 }, (_, i) => ({ input: `f(${i})`, expected: i }));
    const trajectories = await run([makeRow({ extra_info: { interaction_kwargs: { name: "test", test_cases } } })]);
    for (const t of trajectories) {
      expect(t.error).toBeUndefined();
      const [, , told] = t.messages;
      expect(told!.content).toMatch(/^0 of 8 tests passed\.\n- f\(0\): error: stopped after 0\.8 s/);
      expect(told!.content).toMatch(/- f\(1\): not run, since a test before took too long/);
      expect(t.turnScores.map(({ value }) => value)).toEqual([1]);
    }
  });
});
