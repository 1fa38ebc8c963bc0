import { type ChatMessage, findLastAnswer, ToolError } from "@cria/core";
import { type ChecksOf, checkOptions, isObject, optionChecks } from "@cria/core/internal";
import { InstanceStore } from "../instance-store.js";
import { preview } from "../validate-arguments.js";
import { BaseInteraction, type InteractionReply, type ReplyKwargs, type StartKwargs } from "./base-interaction.js";

/** The conversation of a call to an interaction's function. */
export interface InteractionConversation {
  /** Equal in all calls for one conversation. */
  instanceId: string;
  /** The row's `reward_model.ground_truth`, unless its `interaction_kwargs` give another one. */
  groundTruth: unknown;
  dataSource: string | undefined;
  /** The row's `extra_info.interaction_kwargs`. */
  kwargs: Record<string, unknown>;
}

/** A turn of the model without tool calls, and the conversation before it. */
export interface InteractionTurn<State> extends InteractionConversation {
  /** The result of `create` for this conversation; undefined without `create`. */
  state: State;
  /** The text of the last assistant message, which `reply` answers. */
  answer: string;
  /** The whole conversation, the prompt first. */
  messages: readonly ChatMessage[];
  /** Seed of random draws; equal whenever this trajectory is sampled. */
  seed: number;
  /** Aborts when the run ends or the reply takes too long. */
  signal: AbortSignal;
  /** Free-form state of the trajectory that its tools see too. */
  agentData: Record<string, unknown>;
  /**
   * Stops the clock of `tool_timeout_s` while the reply waits for its turn, and returns a function that starts it
   * again.
   */
  pauseDeadline: () => () => void;
}

/**
 * The next user message as a text, or a reply, whose `content` may hold images. `shouldTerminate` (default false) ends
 * the conversation; `content` is optional then. `score` (default 0) is the turn's score.
 */
export type InteractionOutput =
  | string
  | (Partial<InteractionReply> & ({ content: InteractionReply["content"] } | { shouldTerminate: boolean }));

/** An interaction as functions. Only `reply` is needed; write `create` before it, so that its `state` has a type. */
export interface InteractionDefinition<State> {
  /**
   * The name in rows: `interaction_kwargs.name`, or their `data_source`. Default "interaction"; a config may rename it.
   */
  name?: string;
  /** Makes the state of a conversation, before its first turn. `messages` is the row's prompt. */
  create?: (conversation: InteractionConversation & { messages: readonly ChatMessage[] }) => State | Promise<State>;
  /** The same as `BaseInteraction.keepsState`; default: true with `create`. */
  keepsState?: boolean;
  /** Replies to a turn of the model without tool calls. An exception fails the conversation. */
  reply: (turn: InteractionTurn<State>) => InteractionOutput | Promise<InteractionOutput>;
  /**
   * Score of the whole conversation, at its end: its reward where no reward function judges its data source. Default 0.
   */
  score?: (state: State, conversation: InteractionConversation) => number | Promise<number>;
  /** Frees what the state holds; called once for each state, also after errors and aborts. */
  release?: (state: State, conversation: InteractionConversation) => void | Promise<void>;
  /** Frees resources that outlive conversations, such as a process. */
  dispose?: () => void | Promise<void>;
}

const { any, function: callback } = optionChecks;

const definitionChecks: ChecksOf<Required<InteractionDefinition<unknown>>> = {
  name: optionChecks.text,
  create: callback,
  keepsState: optionChecks.flag,
  // A wrong one is an error of its own.
  reply: any,
  score: callback,
  release: callback,
  dispose: callback,
};

/**
 * Makes an interaction from functions: `interaction(({ answer }) => (answer === "4" ? { shouldTerminate: true, score: 1
 * } : "No."))`, or with a name, a state for each conversation and a score: `interaction({ name, create, reply, score,
 * release })`.
 * @throws ConfigError for an unknown or wrong field; ToolError without a function `reply`.
 */
export function interaction(reply: InteractionDefinition<undefined>["reply"]): BaseInteraction;
export function interaction<State = undefined>(definition: InteractionDefinition<State>): BaseInteraction;
export function interaction<State>(
  given: InteractionDefinition<State> | InteractionDefinition<State>["reply"],
): BaseInteraction {
  const definition = typeof given === "function" ? { reply: given } : given;
  if (isObject(definition)) checkOptions<object>("interaction", definition, definitionChecks);
  if (typeof definition?.reply === "function") return new FunctionInteraction(definition);
  throw new ToolError("has no function that replies", {
    code: "interaction/bad-definition",
    subject: "argument of interaction",
    expected: "a function, or { reply }",
    received: preview(given),
  });
}

interface Instance<State> {
  state: State;
  conversation: InteractionConversation;
}

class FunctionInteraction<State> extends BaseInteraction {
  private readonly instances: InstanceStore<Instance<State>>;

  constructor(private readonly definition: InteractionDefinition<State>) {
    super({}, definition.name ?? "interaction");
    this.instances = new InstanceStore(this.name);
  }

  override get keepsState(): boolean {
    return this.definition.keepsState ?? this.definition.create !== undefined;
  }

  async startInteraction(
    instanceId: string,
    { ground_truth: groundTruth, data_source: dataSource, messages = [], ...kwargs }: StartKwargs = {},
  ): Promise<void> {
    const conversation = { instanceId, groundTruth, dataSource, kwargs };
    const state = (await this.definition.create?.({ ...conversation, messages })) as State;
    this.instances.start(instanceId, { state, conversation });
  }

  async generateResponse(
    instanceId: string,
    messages: readonly ChatMessage[],
    { signal, pauseDeadline, seed = 0, agentData = {} }: ReplyKwargs = {},
  ): Promise<InteractionReply> {
    const { state, conversation } = this.instances.get(instanceId);
    const output = await this.definition.reply({
      ...conversation,
      state,
      answer: findLastAnswer(messages),
      messages,
      seed,
      signal: signal ?? new AbortController().signal,
      agentData,
      pauseDeadline: pauseDeadline ?? (() => () => {}),
    });
    return this.readOutput(output);
  }

  override async calculateScore(instanceId: string): Promise<number> {
    const { state, conversation } = this.instances.get(instanceId);
    return (await this.definition.score?.(state, conversation)) ?? 0;
  }

  async finalizeInteraction(instanceId: string): Promise<void> {
    if (!this.instances.has(instanceId)) return;
    const { state, conversation } = this.instances.get(instanceId);
    this.instances.end(instanceId);
    await this.definition.release?.(state, conversation);
  }

  override async dispose(): Promise<void> {
    await this.definition.dispose?.();
  }

  /** @throws ToolError for a reply that has no content and does not end the conversation. */
  private readOutput(output: InteractionOutput): InteractionReply {
    const given: Partial<InteractionReply> = typeof output === "string" ? { content: output } : { ...output };
    const { shouldTerminate = false, content = shouldTerminate ? "" : undefined, score = 0, data } = given;
    if (typeof content === "string" || Array.isArray(content)) return { shouldTerminate, content, score, data };
    throw new ToolError("says nothing", {
      code: "interaction/bad-reply",
      subject: `reply of interaction "${this.name}"`,
      expected: "a text, { content }, or { shouldTerminate: true }",
      received: preview(output),
    });
  }
}
