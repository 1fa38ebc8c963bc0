import { drawCode, makeCodePrompt } from "./code-demonstrations.js";
import { Random } from "./random.js";

/** Rows of the code game in the trainer's dataset format; `val` is held out from SFT and RL. */
export function makeCodeGameRows(): Record<"train" | "val", object[]> {
  return { train: makeRows("train", 2048, 3001), val: makeRows("heldOut", 256, 4002) };
}

function makeRows(side: "train" | "heldOut", count: number, seed: number): object[] {
  const random = new Random(seed);
  const codes = new Set<string>();
  while (codes.size < count) codes.add(drawCode(random, side));
  return [...codes].map((code, index) => ({
    data_source: "code_game",
    prompt: makeCodePrompt(),
    reward_model: { style: "interaction", ground_truth: code },
    extra_info: {
      index,
      interaction_kwargs: { name: "code_game" },
      // No tool is shown to it, also where other rows of a dataset have some.
      need_tools_kwargs: true,
      tools_kwargs: {},
    },
    agent_name: "tool_agent",
  }));
}
