import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeTrajectories, parseFilter } from "@cria/records";
import { makeFakeRollout, makeRow } from "@cria/rollout/testing";
import { CalculatorTool, getToolFormat } from "@cria/tools";
import { afterAll, describe, expect, it } from "vitest";
import { readExamples } from "./read-examples.js";

const folder = mkdtempSync(join(tmpdir(), "cria-sft-dumps-"));
afterAll(() => rmSync(folder, { recursive: true }));

const said = ['<tool_call>{"name": "calculator", "arguments": {"expression": "1 + 1"}}</tool_call>', "It is 2."];

/** A dump of three conversations with a call; they have the rewards 0, 1 and none. */
async function writeDump() {
  const { run, engine, options } = makeFakeRollout({
    reply: ({ turn }) => said[turn]!,
    tools: [new CalculatorTool()],
    reward: (_, __, truth) => {
      if (truth === "broken") throw new Error("no judge");
      return Number(truth);
    },
  });
  const rows = ["0", "1", "broken"].map((truth, i) => makeRow({ reward_model: { ground_truth: truth } }, i));
  const trajectories = await run(rows);
  const lines = describeTrajectories(trajectories, { step: 1, rows, tools: options.tools, engine });
  const file = join(folder, "1.jsonl");
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return { file, trajectories, tokenizer: options.tokenizer };
}

describe("dumps as conversations to learn from", () => {
  it("give the tokens and masks of the rollouts, of those that are kept", async () => {
    const { file, trajectories, tokenizer } = await writeDump();
    const options = {
      messagesKey: "messages",
      toolsKey: "tools",
      maxLength: 5000,
      parse: getToolFormat("hermes").parse,
    };
    const all = await readExamples([file], tokenizer, options);
    expect(all).toMatchObject({ unusable: 1, dropped: 0 });
    const toExample = ({ tokenIds, responseMask }: (typeof trajectories)[number]) => ({
      tokenIds,
      lossMask: responseMask,
    });
    expect(all.examples).toEqual(trajectories.slice(0, 2).map(toExample));
    // The first line of the file, which describes the tool, is not kept.
    const good = await readExamples([file], tokenizer, { ...options, keep: parseFilter("reward >= 1") });
    expect(good.unusable).toBe(2);
    expect(good.examples).toEqual([toExample(trajectories[1]!)]);
    const none = readExamples([file], tokenizer, { ...options, keep: parseFilter("reward > 9") });
    await expect(none).rejects.toMatchObject({
      code: "data/empty",
      expected: expect.stringContaining("data.keep"),
      received: expect.stringMatching(/^3 that are not kept/),
    });
  });

  it("are distinguished from rows of conversations, which no filter can choose", async () => {
    const { file, tokenizer } = await writeDump();
    const rows = join(folder, "rows.jsonl");
    const messages = [
      { role: "user", content: "a" },
      { role: "assistant", content: "b" },
    ];
    writeFileSync(rows, `${JSON.stringify({ messages })}\n`);
    const options = { messagesKey: "messages", toolsKey: "tools", maxLength: 5000 };
    expect((await readExamples([rows, file], tokenizer, options)).examples).toHaveLength(3);
    const keep = parseFilter("reward >= 0");
    await expect(readExamples([rows], tokenizer, { ...options, keep })).rejects.toMatchObject({
      code: "data/bad-filter",
      subject: expect.stringMatching(/rows\.jsonl, line 1/),
    });
  });
});
