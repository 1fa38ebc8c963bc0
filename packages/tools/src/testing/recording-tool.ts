import type { ToolSchema } from "@cria/core";
import { z } from "zod";
import { BaseTool, type CreateOptions, type ExecuteOptions, type ToolResult } from "../base-tool.js";
import { defineToolSchema } from "../schema.js";

/** One call of a tool's lifecycle, with its arguments. */
export interface RecordedCall {
  phase: "create" | "execute" | "calcReward" | "release" | "dispose";
  instanceId: string;
  parameters?: Record<string, unknown>;
  kwargs: Record<string, unknown>;
}

export interface RecordingToolOptions {
  name?: string;
  schema?: ToolSchema;
  /** The implementation of `execute`; by default it answers "ok". */
  execute?: (parameters: Record<string, unknown>, options: ExecuteOptions) => ToolResult | Promise<ToolResult>;
  reward?: number;
  /** Phases that throw. */
  fails?: readonly RecordedCall["phase"][];
}

/** A tool that records every call of its lifecycle, for tests of code that drives tools. */
export class RecordingTool extends BaseTool {
  readonly calls: RecordedCall[] = [];

  constructor(private readonly options: RecordingToolOptions = {}) {
    super(options.schema ?? defineToolSchema(options.name ?? "record", "Records.", z.looseObject({})));
  }

  /** Instances that were created and not released. */
  get open(): string[] {
    const released = new Set(this.of("release").map((call) => call.instanceId));
    return this.of("create")
      .map((call) => call.instanceId)
      .filter((id) => !released.has(id));
  }

  of(phase: RecordedCall["phase"]): RecordedCall[] {
    return this.calls.filter((call) => call.phase === phase);
  }

  override async create(instanceId: string, { createKwargs = {} }: CreateOptions = {}) {
    this.record({ phase: "create", instanceId, kwargs: createKwargs });
    return { instanceId };
  }

  async execute(
    instanceId: string,
    parameters: Record<string, unknown>,
    options: ExecuteOptions = {},
  ): Promise<ToolResult> {
    this.record({ phase: "execute", instanceId, parameters, kwargs: options });
    return (await this.options.execute?.(parameters, options)) ?? { response: { text: "ok" }, reward: 0, metrics: {} };
  }

  override async calcReward(instanceId: string, kwargs: Record<string, unknown> = {}): Promise<number> {
    this.record({ phase: "calcReward", instanceId, kwargs });
    return this.options.reward ?? 0;
  }

  override async release(instanceId: string, kwargs: Record<string, unknown> = {}): Promise<void> {
    this.record({ phase: "release", instanceId, kwargs });
  }

  override async dispose(): Promise<void> {
    this.record({ phase: "dispose", instanceId: "", kwargs: {} });
  }

  private record(call: RecordedCall): void {
    this.calls.push(call);
    if (this.options.fails?.includes(call.phase)) throw new Error(`${call.phase} fails`);
  }
}
