import type { ToolSchema } from "@cria/core";

/**
 * What a tool answers. Policies read only text: media are named in the tool's message (`[image omitted]`) and counted
 * (`tool_media_omitted`), but not seen.
 */
export interface ToolResponse {
  text?: string;
  image?: unknown[];
  video?: unknown[];
  audio?: unknown[];
}

export interface ToolResult {
  response: ToolResponse;
  /** Step reward of this call; 0 means none. */
  reward: number;
  /** Of this call: `tool/<tool>/<metric>/mean` is the mean over the tool's answers. */
  metrics: Record<string, number>;
}

export interface CreateOptions {
  /** The row's `tools_kwargs[name].create_kwargs`. */
  createKwargs?: Record<string, unknown>;
  /** The row's `reward_model.ground_truth`, a task's `truth`. */
  groundTruth?: unknown;
  /** The task's row (`extra_info.row`); undefined for rows of a config's files. */
  row?: unknown;
}

export interface ExecuteOptions {
  /** Free-form state of the trajectory that the agent loop keeps. */
  agentData?: Record<string, unknown>;
  signal?: AbortSignal;
  /**
   * Stops the clock of `tool_timeout_s` while the call waits for its turn, and returns a function that starts it again.
   * A tool that pauses must limit the wait itself.
   */
  pauseDeadline?: () => () => void;
  /** The row's `tools_kwargs[name].execute_kwargs`. */
  [kwarg: string]: unknown;
}

export type ToolOrigin = "own" | "mcp" | "ai-sdk";

/**
 * A tool of an agent. Each trajectory has an instance: `create` before its first turn, `execute` for each call,
 * `calcReward` at its end, and `release` always, also after errors and aborts. Kwargs and arguments belong to the
 * trajectory: changing them affects no other one. All trajectories share the schema, which is read-only once rollouts
 * have begun.
 *
 * Calls of one turn may run at once on an instance (`max_parallel_calls`). A call that takes too long has its signal
 * aborted; the next call of the instance waits until it has ended, `release` for a second at most.
 */
export abstract class BaseTool {
  constructor(
    readonly schema: ToolSchema,
    readonly config: Record<string, unknown> = {},
  ) {}

  get name(): string {
    return this.schema.function.name;
  }

  /** Who wrote it: tools of MCP servers and of the AI SDK follow rules of their own. */
  get origin(): ToolOrigin {
    return "own";
  }

  /**
   * Starts an instance and returns its id. The model does not see a `response`, because the prompt is already made:
   * what the model must know from the start belongs in the row's prompt.
   */
  async create(
    instanceId: string,
    _options: CreateOptions = {},
  ): Promise<{ instanceId: string; response?: ToolResponse }> {
    return { instanceId };
  }

  abstract execute(
    instanceId: string,
    parameters: Record<string, unknown>,
    options?: ExecuteOptions,
  ): Promise<ToolResult>;

  /** Reward of the whole trajectory from this tool's point of view. */
  async calcReward(_instanceId: string, _kwargs: Record<string, unknown> = {}): Promise<number> {
    return 0;
  }

  async release(_instanceId: string, _kwargs: Record<string, unknown> = {}): Promise<void> {}

  /** Frees what the tool holds beyond trajectories, such as workers or a server. Called once, when no instance is left. */
  async dispose(): Promise<void> {}
}

/** Checks the shape, not instanceof: a user's module may have imported another copy of this package. */
export function isTool(value: unknown): value is BaseTool {
  const tool = value as BaseTool | null;
  return typeof tool === "object" && typeof tool?.execute === "function" && tool.schema?.type === "function";
}
