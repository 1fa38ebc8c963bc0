import type { PolicySequence, Registry, Trajectory } from "@cria/core";
import type { RecordedCall, UnjudgedTrajectory } from "@cria/episodes";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { BaseInteraction, BaseTool } from "@cria/tools";
import type { DatasetRow } from "../data/dataset-row.js";
import type { ImageAccess } from "../images/load-content.js";
import type { RewardAggregator, RewardFunction, RewardManager } from "../rewards/index.js";
import type { TraceCarrier, Tracer } from "../tracing/tracer.js";
import type { AnswerSource, MultiTurnOptions, SamplingParams } from "./agent-loop.js";
import { type AgentLoopEntry, agentLoops } from "./agent-loops.js";
import type { AgentOptions } from "./agent-options.js";
import type { OnFailure } from "./failures.js";
import type { Truncation } from "./fit-prompt.js";
import type { Semaphore } from "./semaphore.js";
import type { OnRequestState } from "./state-log.js";

/** What a conversation is given of its record. What is left out is as in any conversation. */
export interface ConversationReplay {
  /** The trajectory's. */
  seed: number;
  /** Of built-in loops. */
  answers?: AnswerSource;
  /** Of agents: what they asked, in the place of their code. */
  calls?: readonly RecordedCall[];
  /** What its tokens are sampled in, made of each sequence that it begins with. Of built-in loops and agents. */
  steer?: (sequence: PolicySequence) => PolicySequence;
}

/** A conversation that is to be held, by all that decides it beside weights and environment: a value. */
export interface ConversationWork {
  row: DatasetRow;
  /** Which of the row's samples it is. */
  sample: number;
  /** Of the training. */
  step: number;
  /** As `RolloutOptions.policyVersion`. */
  policyVersion: number;
  /** With the seed of this conversation. */
  sampling: SamplingParams;
}

export interface RolloutOptions {
  tokenizer: DeltaTokenizer;
  tools: ReadonlyMap<string, BaseTool>;
  /** By name. Null or left out: `interaction_kwargs` of rows is ignored. */
  interactions?: ReadonlyMap<string, BaseInteraction> | null;
  multiTurn: MultiTurnOptions;
  /** A function judges each trajectory separately. Null: rewards by data source judge, else interactions and tools. */
  reward: RewardFunction | RewardManager | null;
  /** Makes the reward of a trajectory from its score and its step rewards, once. Default: each as it is. */
  aggregate?: RewardAggregator;
  /** What happens when the environment or the judge breaks a conversation; default "drop". */
  onFailure?: OnFailure;
  /** Of agents that call the policy by themselves. */
  agent?: AgentOptions;
  /** Limits of images, and what fetches addresses; default: those of `loadImage`, and addresses are refused. */
  images?: ImageAccess;
  /** Give the rendered prompt, as the model saw it, in `extraFields.full_prompt`. */
  returnFullPrompt?: boolean;
  /** Holds a recorded conversation again, by the row's place among the rows, in the place of what is drawn for it. `n` is 1. */
  replay?: (position: number) => ConversationReplay;
  /** Samples of each row. */
  n: number;
  temperature: number;
  topP: number;
  topK: number;
  /** Tokens less likely than so many times the likeliest are not sampled; default 0: all are. */
  minP?: number;
  /** Texts that end a turn; default none. */
  stop?: readonly string[];
  /** Most tokens of one turn; default null: what is left of `responseLength`. */
  maxTokensPerTurn?: number | null;
  /** With `step`, row and sample it decides every random draw. */
  seed: number;
  step: number;
  maxPromptLength: number;
  responseLength: number;
  truncation: Truncation;
  defaultAgentLoop: string;
  /** Loops by name; default: built-in and registered ones. */
  agentLoops?: Registry<AgentLoopEntry>;
  /** Reward functions by `data_source`, where `reward` is null; default: built-in and registered ones. */
  rewards?: Registry<RewardFunction>;
  /**
   * Holds a conversation somewhere, by `holdConversation`; `here` does so in this process. What comes of it is the same wherever
   * that is, if weights and environment are. It is judged here. Default: `here`.
   */
  converse?: (
    work: ConversationWork,
    here: () => Promise<UnjudgedTrajectory>,
    /** The conversation's trace, for whoever holds it: `parent` there. Empty without one. */
    trace: TraceCarrier,
  ) => Promise<UnjudgedTrajectory>;
  /** Conversations at once in this process. Default: as many as fit into the KV cache. */
  concurrency?: number;
  /** In place of `concurrency`: places that other rollouts of this process take as well. Those of the earliest step go first. */
  slots?: Semaphore;
  /** Updates that the policy had seen, and one; default: `step`, as where each step is sampled after the update before it. */
  policyVersion?: number;
  signal?: AbortSignal;
  /** Gets a trace of each episode; default: nobody does, at no cost. */
  tracer?: Tracer;
  /** The span of another process that the episodes belong to. Default: each is a trace of its own. */
  parent?: TraceCarrier;
  /** Called with warnings, once for each kind. */
  onWarning?: (warning: string) => void;
  /** Called with each state that a conversation enters, once more for one that is sampled again. */
  onState?: OnRequestState;
  /** Called with each trajectory as soon as it is judged. */
  onTrajectory?: (trajectory: Trajectory) => void;
}

/** The loop that a row names, else the default one. @throws ConfigError when no loop has the row's name. */
export function findLoop(
  row: DatasetRow,
  { agentLoops: loops = agentLoops, defaultAgentLoop }: RolloutOptions,
): AgentLoopEntry {
  return loops.get(row.agentName ?? defaultAgentLoop);
}
