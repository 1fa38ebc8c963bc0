// Bring your own tool: a schema, a function, and a state for each conversation.
// A config names a tool by its export: `class_name: ./task.ts#meteredCalculator` in tools.yaml.
import { calculate } from "@cria/tools";
import { defineTask, tool } from "cria";
import { z } from "zod";

/** A calculator that counts: each call beyond the first costs the policy a little reward. */
export const meteredCalculator = tool({
  // The embedded policy only knows a tool of this name; any other model calls yours as its schema says.
  name: "calculator",
  description: "Evaluates arithmetic.",
  inputSchema: z.object({ expression: z.string() }),
  // Before the first turn of a conversation: its state.
  create: () => ({ calls: 0 }),
  // Runs a call whose input fits the schema. An exception becomes a message to the model.
  execute: ({ expression }, { state }) => {
    state.calls++;
    const text = String(calculate(expression) ?? "error: invalid expression");
    return { text, reward: state.calls > 1 ? -0.1 : 0, metrics: { calls: 1 } };
  },
  // The reward of the whole conversation at its end, as far as this tool can tell.
  reward: ({ calls }) => (calls > 0 ? 1 : 0),
});

/** Without a `reward`: the tool judges. */
export const task = defineTask({
  rows: [{ question: "Emma has 86 stamps and loses 58. How many stamps are left?", truth: "28" }],
  system: "You solve problems. Use the tool to compute, then answer with ####.",
  tools: [meteredCalculator],
  maxTurns: 3,
  maxPromptLength: 256,
  maxResponseLength: 128,
});
