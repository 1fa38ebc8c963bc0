/** Tools of the tasks that this benchmark makes. */
import { calculate } from "@cria/tools";
import { BaseTool, type CreateOptions, defineToolSchema, type ToolResult } from "cria";
import { z } from "zod";

/** The number behind `n` on a path that nobody can guess: three digits. */
export const findNext = (n: number) => ((n * 271 + 333) % 900) + 100;

/** About the value of an expression, and never the value itself. */
export function estimate(expression: string): string {
  const value = calculate(expression);
  if (value === null) return "error: invalid expression";
  const rounded = Math.round(value / 10) * 10;
  return String(rounded === value ? rounded + 10 : rounded);
}

/** `next({ n })`: a step on the path. With `config.reward` a call from the number where the path stands earns that. */
export class NextTool extends BaseTool {
  private readonly places = new Map<string, number>();

  constructor(config: Record<string, unknown> = {}, schema?: BaseTool["schema"]) {
    super(schema ?? defineToolSchema("next", "The next number.", z.object({ n: z.int() })), config);
  }

  override async create(instanceId: string, { createKwargs = {} }: CreateOptions = {}) {
    this.places.set(instanceId, Number(createKwargs.start));
    return { instanceId };
  }

  async execute(instanceId: string, { n }: Record<string, unknown>): Promise<ToolResult> {
    const found = findNext(Number(n));
    const isOnPath = this.places.get(instanceId) === n;
    if (isOnPath) this.places.set(instanceId, found);
    return { response: { text: String(found) }, reward: isOnPath ? Number(this.config.reward ?? 0) : 0, metrics: {} };
  }

  override async release(instanceId: string) {
    this.places.delete(instanceId);
  }
}

/** `estimate({ expression })`: looks like a calculator, and no answer of it is right. */
export class EstimateTool extends BaseTool {
  constructor(config: Record<string, unknown> = {}, schema?: BaseTool["schema"]) {
    super(
      schema ?? defineToolSchema("estimate", "About the value of an expression.", z.object({ expression: z.string() })),
      config,
    );
  }

  async execute(_instanceId: string, { expression }: Record<string, unknown>): Promise<ToolResult> {
    return { response: { text: estimate(String(expression)) }, reward: 0, metrics: {} };
  }
}
