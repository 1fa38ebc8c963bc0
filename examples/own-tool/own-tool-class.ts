// The same tool as a class, for tools that a config's keys set up, or that override more methods.
// In tools.yaml: `class_name: ./own-tool-class.ts#MeteredCalculator`, `config: { cost: 0.1 }`.
import { calculate } from "@cria/tools";
import { BaseTool, defineToolSchema, type ToolResult } from "cria";
import { z } from "zod";

const ownSchema = defineToolSchema("calculator", "Evaluates arithmetic.", z.object({ expression: z.string() }));

/** A calculator that counts: each call after the first costs the policy as much as the config says. */
export class MeteredCalculator extends BaseTool {
  private readonly calls = new Map<string, number>();

  constructor(config: Record<string, unknown> = {}, schema: BaseTool["schema"] = ownSchema) {
    super(schema, config);
  }

  /** Before the first turn of a conversation. */
  override async create(instanceId: string) {
    this.calls.set(instanceId, 0);
    return { instanceId };
  }

  /** Runs a call whose `parameters` fit the schema. An exception becomes a message to the model. */
  async execute(instanceId: string, parameters: Record<string, unknown>): Promise<ToolResult> {
    const count = (this.calls.get(instanceId) ?? 0) + 1;
    this.calls.set(instanceId, count);
    const value = calculate(String(parameters.expression));
    const text = value === null ? "error: invalid expression" : String(value);
    return { response: { text }, reward: count > 1 ? -Number(this.config.cost ?? 0.1) : 0, metrics: { calls: 1 } };
  }

  /** The reward of the whole conversation at its end, as far as this tool can tell. */
  override async calcReward(instanceId: string) {
    return (this.calls.get(instanceId) ?? 0) > 0 ? 1 : 0;
  }

  /** Always, also after an error. */
  override async release(instanceId: string) {
    this.calls.delete(instanceId);
  }
}
