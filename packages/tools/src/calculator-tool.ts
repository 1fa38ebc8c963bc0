import { z } from "zod";
import { BaseTool, type ToolResult } from "./base-tool.js";
import { calculate, formatNumber } from "./calculate.js";
import { defineToolSchema } from "./schema.js";

/** Evaluates arithmetic: `calculator({ expression: "12*3+4" })`. */
export class CalculatorTool extends BaseTool {
  constructor(config: Record<string, unknown> = {}, schema?: BaseTool["schema"]) {
    super(
      schema ??
        defineToolSchema("calculator", "Evaluates an arithmetic expression.", z.object({ expression: z.string() })),
      config,
    );
  }

  async execute(_instanceId: string, parameters: Record<string, unknown>): Promise<ToolResult> {
    const value = calculate(String(parameters.expression));
    return {
      response: { text: value === null ? "error: invalid expression" : formatNumber(value) },
      reward: 0,
      metrics: { invalid_expression: value === null ? 1 : 0 },
    };
  }
}
