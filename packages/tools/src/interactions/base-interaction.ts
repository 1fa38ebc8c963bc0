import type { ChatMessage } from "@cria/core";

/** An interaction's reply to an assistant's answer. */
export interface InteractionReply {
  /** Ends the conversation; the model does not see `content` then. */
  shouldTerminate: boolean;
  /** The next user message: a text, or texts and images. */
  content: ChatMessage["content"];
  /** Score of the turn that it answers; 0 means none. */
  score: number;
  /** Free-form. Numbers are metrics: `interaction/<name>/<metric>/mean` is the mean over the interaction's answers. */
  data?: Record<string, unknown>;
}

/** The kwargs of an interaction's start. Names are those of files: snake_case. */
export interface StartKwargs {
  /** The row's `reward_model.ground_truth`, unless its `interaction_kwargs` give another one. */
  ground_truth?: unknown;
  data_source?: string;
  /** The row's prompt. */
  messages?: readonly ChatMessage[];
  /** Any other key of the row's `extra_info.interaction_kwargs`. */
  [kwarg: string]: unknown;
}

export interface ReplyKwargs {
  /** Aborts when the run ends or the reply takes too long. */
  signal?: AbortSignal;
  /**
   * Stops the clock of `tool_timeout_s` while the reply waits for its turn, and returns a function that starts it
   * again. An interaction that pauses must limit the wait itself.
   */
  pauseDeadline?: () => () => void;
  /** Seed of random draws; equal whenever this trajectory is sampled. */
  seed?: number;
  /** Free-form state of the trajectory that its tools see too. */
  agentData?: Record<string, unknown>;
  /** The row's `extra_info.interaction_kwargs`. */
  [kwarg: string]: unknown;
}

/**
 * An environment that answers in a user's place. For each trajectory: `startInteraction` before its first turn,
 * `generateResponse` for each answer of the model that makes no tool call, `calculateScore` at its end, and
 * `finalizeInteraction` always, also after errors and aborts. One object serves all trajectories at once: state is kept
 * by instance id.
 */
export abstract class BaseInteraction {
  /** The name in rows: `interaction_kwargs.name`, or their `data_source`. */
  name: string;

  constructor(
    readonly config: Record<string, unknown> = {},
    name?: string,
  ) {
    this.name = name ?? this.constructor.name;
  }

  /**
   * True (default): a reply may depend on earlier ones of the conversation. With `trainer.journal` a resumed run then
   * asks again for the replies of a conversation that a kill cut off, and takes the recorded ones. False: it does not.
   */
  get keepsState(): boolean {
    return true;
  }

  abstract startInteraction(instanceId: string, kwargs?: StartKwargs): Promise<void>;

  abstract generateResponse(
    instanceId: string,
    messages: readonly ChatMessage[],
    kwargs?: ReplyKwargs,
  ): Promise<InteractionReply>;

  /** Score of the whole conversation; the trajectory's reward where no reward function judges its data source. */
  async calculateScore(_instanceId: string): Promise<number> {
    return 0;
  }

  abstract finalizeInteraction(instanceId: string): Promise<void>;

  /** Frees resources that outlive conversations, such as processes. Called once, when no conversation is left. */
  async dispose(): Promise<void> {}
}
