// Bring your own tool: a schema, a function, and a state for each conversation.   npm start [model.gguf]
// A config names a tool by its export: `class_name: ./my-tool.ts#meteredCalculator` in tools.yaml.
import { fileURLToPath } from "node:url";
import { loadModel } from "@cria/engine";
import { defaultMultiTurn, parseRow, runRollouts } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { calculate, tool } from "@cria/tools";
import { z } from "zod";

/** A calculator that counts: each call beyond the first costs the policy a little reward. */
export const meteredCalculator = tool({
  // The embedded policy has only ever seen a tool of this name; any other model calls yours by what the schema says.
  name: "calculator",
  description: "Evaluates arithmetic.",
  inputSchema: z.object({ expression: z.string() }),
  // Before the first turn of a conversation: its state.
  create: () => ({ calls: 0 }),
  // For each call. The input fits the schema; what is thrown here becomes a message to the model.
  execute: ({ expression }, { state }) => {
    state.calls++;
    const text = String(calculate(expression) ?? "error: invalid expression");
    return { text, reward: state.calls > 1 ? -0.1 : 0, metrics: { calls: 1 } };
  },
  // At the end: what the conversation as a whole earned, as far as this tool can tell.
  reward: ({ calls }) => (calls > 0 ? 1 : 0),
});

const path = process.argv[2] ?? fileURLToPath(new URL("../../models/cria-tiny.gguf", import.meta.url));
const model = await loadModel({ path, threads: 1, maxSequences: 8 });
const tokenizer = DeltaTokenizer.forModel(model);
const row = {
  data_source: "own-tool",
  prompt: [
    { role: "system", content: "You solve problems. Use the tool to compute, then answer with ####." },
    { role: "user", content: "Emma has 86 stamps and loses 58. How many stamps are left?" },
  ],
};
const trajectories = await runRollouts(model, [parseRow(row, 0, "own-tool.ts")], {
  tokenizer,
  tools: new Map([[meteredCalculator.name, meteredCalculator]]),
  multiTurn: { ...defaultMultiTurn, maxAssistantTurns: 3 },
  reward: null, // the tool judges
  n: 8,
  temperature: 1,
  topP: 1,
  topK: 0,
  seed: 3,
  step: 1,
  maxPromptLength: 256,
  responseLength: 128,
  truncation: "error",
  defaultAgentLoop: "tool_agent",
});
for (const { messages, reward, toolRewards } of trajectories) {
  const said = messages.slice(2).map(({ role, content }) => `${role}: ${content}`);
  const steps = toolRewards.map(({ value }) => value).join(", ") || "none";
  console.log(`${said.join("\n")}\n-> reward ${reward}, step rewards: ${steps}\n`);
}

await model.dispose();
