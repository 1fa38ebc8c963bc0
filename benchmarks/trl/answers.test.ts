import { expect, it } from "vitest";
import { openAnswers, readMessages } from "./answers.js";

it("reads the messages of a completion, which begins within the assistant's first", () => {
  const text =
    '<tool_call>{"name": "a"}</tool_call><|im_end|>\n<|im_start|>tool\n7 degrees\nor so<|im_end|>\n<|im_start|>assistant\nIt is 7.<|im_end|>';
  expect(readMessages(text)).toEqual([
    { role: "assistant", content: '<tool_call>{"name": "a"}</tool_call>' },
    { role: "tool", content: "7 degrees\nor so" },
    { role: "assistant", content: "It is 7." },
  ]);
  // Cut off in the middle of its turn.
  expect(readMessages("It is")).toEqual([{ role: "assistant", content: "It is" }]);
});

it("answers calls and judges conversations as the example does", async () => {
  const call = { name: "price", arguments: { item: "camera" } };
  const truth = { calls: [call], answer: "" };
  const row = {
    data_source: "train/one",
    prompt: [{ role: "user" as const, content: "How much is the camera?" }],
    reward_model: { ground_truth: truth },
    extra_info: { tool_selection: ["price"] },
  };
  const answer = await openAnswers([row]);
  const said = await answer({ ask: "tool", row: 0, ...call });
  expect(said).toMatch(/^\d+$/);
  truth.answer = String(said);
  expect(await answer({ ask: "tool", row: 0, ...call, arguments: { item: 7 } })).toBe("error: invalid arguments");
  expect(await answer({ ask: "tool", row: 0, ...call, name: "weather" })).toMatch(/unknown tool "weather"/);

  const turn = `<tool_call>${JSON.stringify(call)}</tool_call><|im_end|>\n<|im_start|>tool\n${said}<|im_end|>\n`;
  const judge = (last: string) =>
    answer({ ask: "reward", row: 0, text: `${turn}<|im_start|>assistant\n${last}<|im_end|>` });
  expect(await judge(`It costs ${said} dollars.`)).toBe(1);
  expect(await judge("I do not know.")).toBeLessThan(1);
});
