import { type JsonSchema, ToolError } from "@cria/core";
import { type ChecksOf, checkOptions, optionChecks, toContentPart, toImageSource } from "@cria/core/internal";
import {
  BaseTool,
  type CreateOptions,
  type ExecuteOptions,
  type ToolImages,
  type ToolResponse,
  type ToolResult,
} from "./base-tool.js";
import { checkToolSchema } from "./check-tool-schema.js";
import {
  isPromiseLike,
  type ReadSchema,
  readInputSchema,
  refuseArguments,
  type ToolArguments,
  type ToolInput,
  type ToolInputSchema,
} from "./input-schema.js";
import { InstanceStore } from "./instance-store.js";
import { defineToolSchema } from "./schema.js";
import { findArgumentError, preview } from "./validate-arguments.js";
import { writeOutput } from "./write-output.js";

/**
 * An answer with more than a text. An object counts as one when it has a `text`, images (`image`) or parts (`content`),
 * and no other keys than these.
 */
export interface ToolAnswer extends ToolResponse {
  /** Step reward of this call. Default 0. */
  reward?: number;
  /** Metrics of this call; `tool/<tool>/<metric>/mean` is the mean over the tool's answers. */
  metrics?: Record<string, number>;
  /** A name of the environment's state after this call, equal wherever the state is; not shown to the model. See `ToolResult.state`. */
  state?: string;
}

/**
 * The return value of `execute`: a text, an answer with a reward, or any value that JSON can express, which the model
 * reads as JSON.
 */
export type ToolOutput = string | number | boolean | null | ToolAnswer | (object & { then?: never });

/** The conversation of a call to a tool's function. */
export interface ToolConversation {
  /** Equal in all calls for one conversation. */
  instanceId: string;
  /** The part of the row's `tools_kwargs[name]` for this function: `create_kwargs`, `execute_kwargs` and so on. */
  kwargs: Record<string, unknown>;
}

/**
 * The input of `create`: the subject of the conversation. `create: ({ row }: ToolStart<Row>) => ...` declares the rows
 * that the tool is for, and `defineTask` refuses others.
 */
export interface ToolStart<Row = unknown> extends ToolConversation {
  /** The row's `reward_model.ground_truth`, a task's `truth`. */
  groundTruth: unknown;
  /** The task's row; undefined for rows of a config's files. */
  row: Row;
  /** Undefined where the policy takes no images. */
  images: ToolImages | undefined;
}

/** The second argument of `execute`. */
export interface ToolContext<State> extends ToolConversation {
  /** The result of `create` for this conversation; undefined without `create`. */
  state: State;
  /** Aborts when the run ends or the call takes too long. */
  signal: AbortSignal;
  /** Free-form state of the trajectory, shared by its tools and its interaction. */
  agentData: Record<string, unknown>;
  /**
   * Stops the clock of `tool_timeout_s` while the call waits for its turn, and returns a function that starts it again.
   */
  pauseDeadline: () => () => void;
}

/** A tool as functions. Only `execute` is needed; write `create` before it, so that its `state` has a type. */
export interface ToolDefinition<
  Schema extends ToolInputSchema,
  State,
  Output extends ToolOutput = ToolOutput,
  Row = unknown,
  Snapshot = unknown,
> {
  /** The name that the model calls: 1 to 64 letters, digits, _ and -. */
  name: string;
  /** The tool's purpose, for the model to read. */
  description: string;
  /** The arguments, an object. `execute` gets the schema's parsed and transformed output. */
  inputSchema: Schema;
  /** Makes the state of a conversation, before its first turn. */
  create?: (conversation: ToolStart<Row>) => State | Promise<State>;
  /** The same as `BaseTool.keepsState`; default: true with `create`. */
  keepsState?: boolean;
  /** Runs a call whose arguments fit the schema. An exception becomes a text for the model. */
  execute: (input: ToolInput<Schema>, context: ToolContext<State>) => Output | Promise<Output>;
  /** Reward of the whole conversation, as this tool judges it at the end. */
  reward?: (state: State, conversation: ToolConversation) => number | Promise<number>;
  /**
   * Data from which `restore` makes this state again, with `create`. It is copied: objects, arrays and values. With both a
   * conversation that goes on from an earlier turn of another one (`rollout.tree`) begins in the state of then; without
   * them its earlier calls are made again.
   */
  snapshot?: (state: State) => Snapshot | Promise<Snapshot>;
  /** Gives the state to go on with. @param state the result of `create`, which it may change and return. */
  restore?: (snapshot: Snapshot, state: State) => State | Promise<State>;
  /** Frees what the state holds; called once for each state, also after errors and aborts. */
  release?: (state: State, conversation: ToolConversation) => void | Promise<void>;
  /** Frees resources that outlive conversations, such as a server. */
  dispose?: () => void | Promise<void>;
}

/** The conversation of a call by the tool's owner; every field is optional. */
export interface ToolCallOptions<State, Row = unknown> extends Partial<ToolStart<Row>> {
  /** The conversation's state, which the caller releases. Default: the result of `create`, released after the call. */
  state?: State;
  signal?: AbortSignal;
  /** Default: an empty object. */
  agentData?: Record<string, unknown>;
}

/**
 * The result of `tool()`: a tool wherever one is accepted, and a function, for tests and programs. `await square({ x: 3
 * })` gives the result of `execute`, after the schema has checked the arguments.
 */
export interface Tool<
  Schema extends ToolInputSchema = ToolInputSchema,
  State = unknown,
  Output extends ToolOutput = ToolOutput,
  Row = unknown,
> extends BaseTool<Row> {
  /**
   * Each call is a separate conversation, unless it is given a `state`.
   * @throws ToolError "tool/bad-arguments" for arguments that do not fit the schema; ConfigError for an unknown or wrong
   * option; exceptions of `execute`.
   */
  (input: ToolArguments<Schema>, options?: ToolCallOptions<State, Row>): Promise<Output>;
}

const { any, function: callback } = optionChecks;

const definitionChecks: ChecksOf<Required<ToolDefinition<ToolInputSchema, unknown>>> = {
  // Wrong ones are errors of their own.
  name: any,
  description: any,
  inputSchema: any,
  execute: any,
  snapshot: any,
  restore: any,
  create: callback,
  keepsState: optionChecks.flag,
  reward: callback,
  release: callback,
  dispose: callback,
};

const callChecks: ChecksOf<Required<ToolCallOptions<unknown>>> = {
  instanceId: optionChecks.text,
  kwargs: optionChecks.object,
  groundTruth: any,
  row: any,
  images: any,
  state: any,
  signal: optionChecks.signal,
  agentData: optionChecks.object,
};

/**
 * Makes a tool of an agent from a schema and a function: `tool({ name: "square", description: "...", inputSchema:
 * z.object({ x: z.number() }), execute: ({ x }) => x * x })`. It can be called: `await square({ x: 3 })`.
 * @throws ConfigError for an unknown or wrong field; ToolError for a name that models cannot call, or a schema that does
 * not describe an object.
 */
export function tool<
  Schema extends ToolInputSchema,
  State = undefined,
  Output extends ToolOutput = ToolOutput,
  Row = unknown,
  Snapshot = unknown,
>(definition: ToolDefinition<Schema, State, Output, Row, Snapshot>): Tool<Schema, State, Output, Row> {
  checkOptions<object>("tool", definition, definitionChecks);
  const { name, description } = definition;
  checkDefinition(definition);
  const subject = `tool "${name}"`;
  const input = readInputSchema(subject, definition.inputSchema);
  const { jsonSchema } = input;
  if (isPromiseLike(jsonSchema)) {
    throw new ToolError("has the promise of a schema", {
      code: "tool/bad-schema",
      subject,
      expected: "a schema",
      received: "jsonSchema() of a promise",
      remedy: "await the promise first",
    });
  }
  const schema = defineToolSchema(name, description, jsonSchema);
  checkToolSchema(schema);
  if (!describesObject(jsonSchema)) {
    throw new ToolError("does not describe an object", {
      code: "tool/bad-schema",
      subject: `inputSchema of ${subject}`,
      expected: "an object: arguments have names",
      received: preview(jsonSchema),
    });
  }
  // Only this tool's own snapshots come back to it.
  const own = definition as unknown as ToolDefinition<Schema, State, Output, Row>;
  return makeCallable(new FunctionTool(schema, input, own));
}

/** A function that is also this tool: it has the tool's fields, and its class. */
function makeCallable<Schema extends ToolInputSchema, State, Output extends ToolOutput, Row>(
  made: FunctionTool<Schema, State, Output, Row>,
): Tool<Schema, State, Output, Row> {
  type Callable = typeof made & Tool<Schema, State, Output, Row>;
  const call = (input: ToolArguments<Schema>, options?: ToolCallOptions<State, Row>) =>
    (call as unknown as Callable).callOnce(input, options);
  // A function's own `name` and `length` would hide those of the class.
  for (const key of ["name", "length"]) Reflect.deleteProperty(call, key);
  Object.setPrototypeOf(call, FunctionTool.prototype);
  return Object.assign(call, made) as unknown as Callable;
}

class FunctionTool<Schema extends ToolInputSchema, State, Output extends ToolOutput, Row> extends BaseTool<Row> {
  private readonly states: InstanceStore<State>;

  constructor(
    schema: BaseTool["schema"],
    private readonly input: ReadSchema,
    private readonly definition: ToolDefinition<Schema, State, Output, Row>,
  ) {
    super(schema);
    this.states = new InstanceStore(`tool "${schema.function.name}"`, "tool");
    // Set only where the definition has it: the loop asks only tools that override `calcReward`.
    const { reward, snapshot, restore } = definition;
    if (reward)
      this.calcReward = async (instanceId, kwargs = {}) => reward(this.stateOf(instanceId), { instanceId, kwargs });
    if (snapshot && restore) {
      this.snapshot = async (instanceId) => snapshot(this.stateOf(instanceId));
      this.restore = async (instanceId, taken) =>
        this.states.start(instanceId, await restore(taken, this.stateOf(instanceId)));
    }
  }

  override get keepsState(): boolean {
    return this.definition.keepsState ?? this.definition.create !== undefined;
  }

  override async create(
    instanceId: string,
    { createKwargs: kwargs = {}, groundTruth, row, images }: CreateOptions<Row> = {},
  ) {
    const start = { instanceId, kwargs, groundTruth, row: row as Row, images };
    if (this.definition.create) this.states.start(instanceId, await this.definition.create(start));
    return { instanceId };
  }

  /** A call by the tool's owner. */
  async callOnce(input: ToolArguments<Schema>, options: ToolCallOptions<State, Row> = {}): Promise<Output> {
    checkOptions<object>(`call of tool "${this.name}"`, options, callChecks);
    const { instanceId = "call", kwargs = {}, groundTruth, row, images, signal, agentData = {} } = options;
    const { create, release } = this.definition;
    const conversation = { instanceId, kwargs };
    const parsed = await this.parse(input as Record<string, unknown>);
    if ("problem" in parsed) throw this.makeArgumentError(parsed.problem, input);
    const isGiven = "state" in options;
    const state = isGiven
      ? (options.state as State)
      : ((await create?.({ ...conversation, groundTruth, row: row as Row, images })) as State);
    try {
      return await this.run(parsed.input, { ...conversation, state, signal, agentData });
    } finally {
      if (!isGiven && create) await release?.(state, conversation);
    }
  }

  async execute(
    instanceId: string,
    parameters: Record<string, unknown>,
    { agentData = {}, signal, pauseDeadline, ...kwargs }: ExecuteOptions = {},
  ): Promise<ToolResult> {
    const state = this.stateOf(instanceId);
    const parsed = await this.parse(parameters);
    if ("problem" in parsed) return refuseArguments(parsed.problem);
    const context = { instanceId, kwargs, state, signal, agentData, pauseDeadline };
    return this.readOutput(await this.run(parsed.input, context));
  }

  /** The input of `execute`, or the problem with the arguments. */
  private async parse(given: Record<string, unknown>): Promise<{ input: ToolInput<Schema> } | { problem: string }> {
    const problem = findArgumentError(this.schema, given);
    if (problem !== null) return { problem };
    const checked = await this.input.validate?.(given);
    if (checked?.success === false) return { problem: checked.error.message };
    return { input: (checked ? checked.value : given) as ToolInput<Schema> };
  }

  private async run(input: ToolInput<Schema>, context: GivenContext<State>): Promise<Output> {
    const { signal = new AbortController().signal, pauseDeadline = () => () => {}, ...rest } = context;
    return this.definition.execute(input, { ...rest, signal, pauseDeadline });
  }

  private makeArgumentError(problem: string, input: unknown): ToolError {
    return new ToolError("does not take these arguments", {
      code: "tool/bad-arguments",
      subject: `tool "${this.name}"`,
      expected: `arguments of its inputSchema: ${problem}`,
      received: preview(input),
    });
  }

  override async release(instanceId: string, kwargs: Record<string, unknown> = {}): Promise<void> {
    if (!this.states.has(instanceId)) return;
    const state = this.states.get(instanceId);
    this.states.end(instanceId);
    await this.definition.release?.(state, { instanceId, kwargs });
  }

  override async dispose(): Promise<void> {
    await this.definition.dispose?.();
  }

  /** @throws ToolError for a conversation that was not created, or is released. */
  private stateOf(instanceId: string): State {
    return this.definition.create ? this.states.get(instanceId) : (undefined as State);
  }

  /** @throws ToolError for a value that JSON cannot express. */
  private readOutput(output: unknown): ToolResult {
    if (isAnswer(output)) {
      const { reward = 0, metrics = {}, state, ...response } = output;
      return { response, reward, metrics, ...(state === undefined ? {} : { state }) };
    }
    return { response: { text: writeOutput(output, this.name) }, reward: 0, metrics: {} };
  }
}

/** A call's context as callers give it. */
type GivenContext<State> = Omit<ToolContext<State>, "signal" | "pauseDeadline"> & {
  signal: AbortSignal | undefined;
  pauseDeadline?: ToolContext<State>["pauseDeadline"] | undefined;
};

const answerKeys = ["text", "image", "content", "video", "audio", "reward", "metrics", "state"];

function isAnswer(output: unknown): output is ToolAnswer {
  if (typeof output !== "object" || output === null) return false;
  if (!Object.keys(output).every((key) => answerKeys.includes(key))) return false;
  const { text, image, content, state } = output as Record<string, unknown>;
  if (state !== undefined && typeof state !== "string") return false;
  if (text !== undefined) return typeof text === "string";
  // Data may have keys of these names.
  const isImage = (entry: unknown) => typeof entry === "object" && toImageSource(entry) !== null;
  const isPart = (entry: unknown) => typeof entry === "object" && toContentPart(entry) !== null;
  return isFilled(content, isPart) || isFilled(image, isImage);
}

function isFilled(list: unknown, isRight: (entry: unknown) => boolean): boolean {
  return Array.isArray(list) && list.length > 0 && list.every(isRight);
}

/** Names that OpenAI's API and the parsers of calls accept. */
const namePattern = /^[a-zA-Z0-9_-]{1,64}$/;

/** Checks the types at run time, for callers in JavaScript. */
function checkDefinition({
  name,
  description,
  execute,
  create,
  snapshot,
  restore,
}: {
  name: unknown;
  description: unknown;
  execute: unknown;
  create?: unknown;
  snapshot?: unknown;
  restore?: unknown;
}): void {
  const check = (isRight: boolean, subject: string, summary: string, expected: string, received: unknown) => {
    if (isRight) return;
    const shown = typeof received === "function" ? "a function" : preview(received);
    throw new ToolError(summary, { code: "tool/bad-definition", subject, expected, received: shown });
  };
  const isCallable = typeof name === "string" && namePattern.test(name);
  check(isCallable, "name of a tool", "cannot be called", "1 to 64 letters, digits, _ and -", name);
  check(typeof description === "string", `description of tool "${name}"`, "is missing", "a text", description);
  check(typeof execute === "function", `execute of tool "${name}"`, "is no function", "a function", execute);
  const given = [snapshot, restore].filter((each) => each !== undefined);
  if (given.length === 0) return;
  const isWhole = given.length === 2 && [create, ...given].every((each) => typeof each === "function");
  check(
    isWhole,
    `snapshot and restore of tool "${name}"`,
    "do not go together",
    "two functions, and create, or neither of them",
    given.length < 2 ? (snapshot === undefined ? "restore alone" : "snapshot alone") : "other values, or no create",
  );
}

/** True if the schema describes only objects; a schema without a type counts as such. */
function describesObject(schema: JsonSchema): boolean {
  const branches = [schema["anyOf"] ?? schema["oneOf"] ?? []].flat() as JsonSchema[];
  if (schema["type"] !== undefined) return schema["type"] === "object";
  return branches.every(describesObject);
}
