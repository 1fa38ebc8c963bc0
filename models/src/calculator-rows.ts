import { makePrompt } from "./policy-prompt.js";
import { Random } from "./random.js";
import { drawProblem, families } from "./word-problems.js";

/** Rows of the calculator environment in the trainer's dataset format; `val` is held out from SFT and RL. */
export function makeCalculatorRows(): Record<"train" | "val", object[]> {
  return { train: makeRows("train", 2048, 1001), val: makeRows("heldOut", 256, 2002) };
}

function makeRows(side: "train" | "heldOut", count: number, seed: number): object[] {
  const random = new Random(seed);
  const seen = new Set<string>();
  const rows: object[] = [];
  while (rows.length < count) {
    const problem = drawProblem(random, side, rows.length % families.length);
    if (seen.has(problem.question)) continue;
    seen.add(problem.question);
    rows.push({
      data_source: "calculator",
      prompt: makePrompt(problem.question),
      reward_model: { style: "rule", ground_truth: problem.answer },
      extra_info: {
        index: rows.length,
        family: problem.family,
        expression: problem.expression,
        need_tools_kwargs: true,
        tools_kwargs: { calculator: { create_kwargs: {} } },
      },
      agent_name: "tool_agent",
    });
  }
  return rows;
}
