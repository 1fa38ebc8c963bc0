import { ToolError } from "@cria/core";
import { z } from "zod";
import { BaseTool, type CreateOptions, type ToolResult } from "./base-tool.js";
import { defineToolSchema } from "./schema.js";

interface Instance {
  groundTruth: string;
  best: number;
}

/**
 * Checks an answer to a GSM8K problem: `calc_gsm8k_reward({ answer: "72" })`. Repeating a wrong answer costs 0.05. It is built in, and no
 * part of the example, because verl's scripts name it by their own path.
 */
export class Gsm8kTool extends BaseTool {
  private readonly instances = new Map<string, Instance>();

  constructor(config: Record<string, unknown> = {}, schema?: BaseTool["schema"]) {
    const answer = z.string().describe("The model's answer: a number, or text that ends with #### number");
    super(
      schema ??
        defineToolSchema("calc_gsm8k_reward", "Checks the answer: 1.0 if right, 0.0 if wrong.", z.object({ answer })),
      config,
    );
  }

  override async create(instanceId: string, options: CreateOptions = {}) {
    this.instances.set(instanceId, { groundTruth: String(options.createKwargs?.ground_truth ?? ""), best: 0 });
    return { instanceId };
  }

  async execute(instanceId: string, parameters: Record<string, unknown>): Promise<ToolResult> {
    const instance = this.instances.get(instanceId);
    if (!instance)
      throw new ToolError("was not created", { code: "tool/no-instance", subject: `instance ${instanceId}` });
    const score = isSameNumber(String(parameters.answer), instance.groundTruth) ? 1 : 0;
    const reward = score > instance.best ? 0 : -0.05;
    instance.best = Math.max(instance.best, score);
    return {
      response: { text: `Current parsed answer: ${parameters.answer}, reward: ${score}` },
      reward,
      metrics: { correct: score },
    };
  }

  override async calcReward(instanceId: string): Promise<number> {
    return this.instances.get(instanceId)?.best ?? 0;
  }

  override async release(instanceId: string): Promise<void> {
    this.instances.delete(instanceId);
  }
}

/** "#### 1,200" and "1200" are the same answer. */
function isSameNumber(answer: string, groundTruth: string): boolean {
  const clean = (text: string) => Number.parseFloat((text.split("####").pop() ?? "").replace(/[$,\s]/g, ""));
  const value = clean(answer);
  return !Number.isNaN(value) && value === clean(groundTruth);
}
