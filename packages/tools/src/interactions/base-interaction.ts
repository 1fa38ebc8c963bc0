import type { ChatMessage } from "@cria/core";

/** An interaction's reply to an assistant's answer. */
export interface InteractionReply {
  /** The conversation ends here; `content` is then not shown to the model. */
  shouldTerminate: boolean;
  /** The next user message: a text, or texts and images. */
  content: ChatMessage["content"];
  /** Score of the turn that it answers; 0 means none. */
  score: number;
  /** Free-form. Numbers are metrics: `interaction/<name>/<metric>/mean` is the mean over the interaction's answers. */
  data?: Record<string, unknown>;
}

/** What an interaction learns of its row when it starts. Names are those of files: snake_case. */
export interface StartKwargs {
  /** The row's `reward_model.ground_truth`, unless its `interaction_kwargs` have their own. */
  ground_truth?: unknown;
  data_source?: string;
  /** The row's prompt. */
  messages?: readonly ChatMessage[];
  /** Whatever else is in the row's `extra_info.interaction_kwargs`. */
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
  /** Seed of random draws; it is the same whenever this trajectory is sampled. */
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
  /** What rows call it: `interaction_kwargs.name`, or their `data_source`. */
  name: string;

  constructor(
    readonly config: Record<string, unknown> = {},
    name?: string,
  ) {
    this.name = name ?? this.constructor.name;
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

  /** Frees what it holds beyond conversations, such as processes. Called once, when no conversation is left. */
  async dispose(): Promise<void> {}
}
