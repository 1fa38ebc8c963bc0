import type { ToolSchema } from "@cria/core";

/** As the template below says it. */
export const templateSchema: ToolSchema = {
  type: "function",
  function: {
    name: "calculator",
    description: "Evaluates an arithmetic expression.",
    parameters: {
      type: "object",
      properties: { expression: { type: "string", description: "Numbers with + - * / and parentheses" } },
      required: ["expression"],
    },
  },
};

export const toolTemplate = `import { BaseTool, defineToolSchema, type ToolResult } from "cria";

/** Name, description and arguments (JSON Schema, or a zod object): what the model is told of the tool. */
const schema = defineToolSchema("calculator", "Evaluates an arithmetic expression.", {
  type: "object",
  properties: { expression: { type: "string", description: "Numbers with + - * / and parentheses" } },
  required: ["expression"],
});

/** What the model can do in this environment. One object serves all conversations: keep state by instanceId. */
export class MyTool extends BaseTool {
  private readonly calls = new Map<string, number>();

  constructor(config: Record<string, unknown> = {}) {
    super(schema, config);
  }

  /** Before the first turn. createKwargs: the row's tools_kwargs.calculator.create_kwargs. */
  override async create(instanceId: string) {
    this.calls.set(instanceId, 0);
    return { instanceId };
  }

  /** For each call, its arguments already checked. Errors are texts, so that the model can read them. */
  override async execute(instanceId: string, parameters: Record<string, unknown>): Promise<ToolResult> {
    this.calls.set(instanceId, (this.calls.get(instanceId) ?? 0) + 1);
    const value = evaluate(String(parameters.expression));
    return { response: { text: value === null ? "error: invalid expression" : String(value) }, reward: 0, metrics: {} };
  }

  /** When the conversation has ended, however it ended. */
  override async release(instanceId: string) {
    this.calls.delete(instanceId);
  }
}

/** Only characters of arithmetic get as far as being evaluated. */
function evaluate(expression: string): number | null {
  if (!/^[\\d+\\-*/(). ]{1,100}$/.test(expression)) return null;
  try {
    const value: unknown = Function(\`"use strict"; return (\${expression});\`)();
    return typeof value === "number" && Number.isFinite(value) ? Math.round(value * 100) / 100 : null;
  } catch {
    return null;
  }
}
`;
