// Bring your own tool: a class, its schema, and a state for each conversation.   npm start [model.gguf]
// In a config the same class is one line: `class_name: ./own-tool.ts#MeteredCalculator` in tools.yaml.
import { fileURLToPath } from "node:url";
import { loadModel } from "@cria/engine";
import { defaultMultiTurn, parseRow, runRollouts } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { BaseTool, calculate, defineToolSchema, type ToolResult } from "@cria/tools";
import { z } from "zod";

/** A calculator that counts: each call beyond the first costs the policy a little reward. */
export class MeteredCalculator extends BaseTool {
  private readonly calls = new Map<string, number>();

  constructor(config: Record<string, unknown> = {}) {
    // The embedded policy has only ever seen a tool of this name; any other model calls yours by what the schema says.
    super(defineToolSchema("calculator", "Evaluates arithmetic.", z.object({ expression: z.string() })), config);
  }

  /** Before the first turn of a conversation. */
  override async create(instanceId: string) {
    this.calls.set(instanceId, 0);
    return { instanceId };
  }

  /** For each call. `parameters` fit the schema; what is thrown here becomes a message to the model. */
  async execute(instanceId: string, parameters: Record<string, unknown>): Promise<ToolResult> {
    const count = (this.calls.get(instanceId) ?? 0) + 1;
    this.calls.set(instanceId, count);
    const value = calculate(String(parameters.expression));
    const text = value === null ? "error: invalid expression" : String(value);
    return { response: { text }, reward: count > 1 ? -0.1 : 0, metrics: { calls: 1 } };
  }

  /** At the end: what the conversation as a whole earned, as far as this tool can tell. */
  override async calcReward(instanceId: string) {
    return (this.calls.get(instanceId) ?? 0) > 0 ? 1 : 0;
  }

  /** Always, also after an error. */
  override async release(instanceId: string) {
    this.calls.delete(instanceId);
  }
}

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
const tool = new MeteredCalculator();
const trajectories = await runRollouts(model, [parseRow(row, 0, "own-tool.ts")], {
  tokenizer,
  tools: new Map([[tool.name, tool]]),
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
