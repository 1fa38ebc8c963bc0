import type { ContentPart, ImageSource, LoadedImage, Picture, ToolSchema } from "@cria/core";

/**
 * A tool's answer. A policy with a projector sees the images, then the text. The tool's message names media that the
 * policy cannot see (`[image omitted]`), and `tool_media_omitted` counts them. An unreadable image turns the answer
 * into an error.
 */
export interface ToolResponse {
  text?: string;
  /**
   * Bytes, base64, a path, or an address where `data.fetch_images` is on. Tools of MCP and the AI SDK give only bytes
   * or base64.
   */
  image?: readonly ImageSource[];
  /** Texts and images in their order; replaces `text` and `image`. */
  content?: readonly ContentPart[];
  video?: unknown[];
  audio?: unknown[];
}

export interface ToolResult {
  response: ToolResponse;
  /** Step reward of this call; 0 means none. */
  reward: number;
  /** Metrics of this call; `tool/<tool>/<metric>/mean` is the mean over the tool's answers. */
  metrics: Record<string, number>;
  /**
   * Name of the environment's current state, equal in equal states: a page, a room, a board. The model does not see
   * it; estimators group turns that answer the same state (gigpo). If several calls of a turn give a name, the last
   * one counts.
   */
  state?: string;
}

/** Images of the conversation, for tools that read them. */
export interface ToolImages {
  /** Images of the row's prompt, in their order. */
  readonly prompt: readonly LoadedImage[];
  /**
   * Loads an image that the row names, by the rules of the row's own images.
   * @throws DataError as `loadImage`.
   */
  load(source: ImageSource): Promise<LoadedImage>;
  /** Decodes an image. @throws EngineError for a damaged file, or one of too many pixels. */
  decode(image: LoadedImage): Promise<Picture>;
}

export interface CreateOptions<Row = unknown> {
  /** The row's `tools_kwargs[name].create_kwargs`. */
  createKwargs?: Record<string, unknown>;
  /** The row's `reward_model.ground_truth`, a task's `truth`. */
  groundTruth?: unknown;
  /** The task's row (`extra_info.row`); undefined for rows of a config's files. */
  row?: Row;
  /** Absent: the policy takes no images. A tool that needs them later keeps this in its instance. */
  images?: ToolImages;
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
 *
 * `Row` is what its `create` needs of a task's rows: `defineTask` refuses rows of another type. A class says it by its
 * options: `create(instanceId, { row }: CreateOptions<Row>)`.
 */
export abstract class BaseTool<Row = unknown> {
  constructor(
    readonly schema: ToolSchema,
    readonly config: Record<string, unknown> = {},
  ) {}

  get name(): string {
    return this.schema.function.name;
  }

  /** Author of the tool; tools of MCP servers and of the AI SDK follow other rules than our own. */
  get origin(): ToolOrigin {
    return "own";
  }

  /**
   * True: what a call answers may depend on earlier calls of the conversation. With `trainer.journal` a resumed run
   * then repeats the calls of a conversation that a kill cut off, and takes the recorded answers. False: such calls are
   * not made again. Default: true for a tool with its own `create`.
   */
  get keepsState(): boolean {
    return this.create !== BaseTool.prototype.create;
  }

  /**
   * Starts an instance and returns its id. The model does not see a `response`, because the prompt is already made; put
   * facts that the model must know from the start into the row's prompt.
   */
  async create(
    instanceId: string,
    _options: CreateOptions<Row> = {},
  ): Promise<{ instanceId: string; response?: ToolResponse }> {
    return { instanceId };
  }

  abstract execute(
    instanceId: string,
    parameters: Record<string, unknown>,
    options?: ExecuteOptions,
  ): Promise<ToolResult>;

  /**
   * The state that an instance has come to, as data: objects, arrays and values, which are copied. With `snapshot` and
   * `restore` a conversation that goes on from an earlier turn of another one (`rollout.tree`) begins in the state of
   * then. Without them the calls until then are made again, if the tool `keepsState`, and have to give the same
   * answers.
   */
  snapshot?(instanceId: string): Promise<unknown>;

  /**
   * Brings an instance that was just created into the state of a snapshot. Other instances may be given the same one.
   */
  restore?(instanceId: string, snapshot: unknown): Promise<void>;

  /** Reward of the whole trajectory, as this tool judges it. */
  async calcReward(_instanceId: string, _kwargs: Record<string, unknown> = {}): Promise<number> {
    return 0;
  }

  async release(_instanceId: string, _kwargs: Record<string, unknown> = {}): Promise<void> {}

  /** Frees resources that outlive trajectories, such as workers or a server. Called once, when no instance is left. */
  async dispose(): Promise<void> {}
}

/** Checks the shape, not instanceof: a user's module may have imported another copy of this package. */
export function isTool(value: unknown): value is BaseTool {
  const tool = value as BaseTool | null;
  // Tools made by `tool()` are functions.
  const isHolder = typeof tool === "object" || typeof tool === "function";
  return isHolder && typeof tool?.execute === "function" && tool.schema?.type === "function";
}
