import type { ToolSchema } from "@cria/core";

/** The schema of the template below. */
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

export const toolTemplate = `import { tool } from "cria";
import { z } from "zod";

/** The model's tool in this environment. The model sees name, description and inputSchema. */
export const myTool = tool({
  name: "calculator",
  description: "Evaluates an arithmetic expression.",
  inputSchema: z.object({ expression: z.string().describe("Numbers with + - * / and parentheses") }),

  /**
   * Makes the state of a conversation, before its first turn. kwargs: the row's tools_kwargs.calculator.create_kwargs.
   */
  create: ({ kwargs }) => ({ calls: 0, most: Number(kwargs.most_calls ?? 10) }),

  /** Runs a call with checked arguments. Errors are texts, so that the model can read them. */
  execute: ({ expression }, { state }) => {
    state.calls++;
    if (state.calls > state.most) return "error: no calls are left";
    const value = evaluate(expression);
    return value === null ? "error: invalid expression" : String(value);
  },
});

/** Evaluates only characters of arithmetic. */
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
