import type { PolicySequence, Registry, SamplingOptions, Trajectory } from "@cria/core";
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
import type { AnswerJournal } from "./answer-journal.js";
import type { OnFailure } from "./failures.js";
import type { Truncation } from "./fit-prompt.js";
import type { Semaphore } from "./semaphore.js";
import type { OnRequestState } from "./state-log.js";
import type { SamplingPolicy } from "./switching-sequence.js";
import type { TreeOptions } from "./tree-options.js";
import type { TurnValueOptions } from "./turn-values.js";

/** Recorded parts of a conversation to replay. A part left out runs as usual. */
export interface ConversationReplay {
  /** Seed of the trajectory. */
  seed: number;
  /** Seeds of its first turns, if it took them over from another conversation. Left out: none. */
  earlierSeeds?: readonly number[] | undefined;
  /** Recorded replies; for built-in loops. */
  answers?: AnswerSource;
  /** Recorded requests, repeated instead of running the agent's code; for agents. */
  calls?: readonly RecordedCall[];
  /** Wraps each sequence that the conversation begins with, to sample in. For built-in loops and agents. */
  steer?: (sequence: PolicySequence) => PolicySequence;
  /** The policy of each turn of the assistant, if there are several; the last one samples all further turns. */
  policies?: readonly SamplingPolicy[];
}

/** A turn of the assistant that begins. */
export interface BeginningTurn {
  row: DatasetRow;
  /** Seed of the conversation. */
  seed: number;
  /** Its number among the assistant's turns, from 1. */
  number: number;
}

/** A conversation to run, as a plain value: everything that determines it beside weights and environment. */
export interface ConversationWork {
  row: DatasetRow;
  /** Index of the sample within its row. */
  sample: number;
  /** Step of the training. */
  step: number;
  /** The same as `RolloutOptions.policyVersion`. */
  policyVersion: number;
  /** Sampling parameters, with this conversation's seed. */
  sampling: SamplingParams;
}

export interface RolloutOptions extends Pick<SamplingOptions, "minP">, Required<Omit<SamplingOptions, "minP">> {
  tokenizer: DeltaTokenizer;
  tools: ReadonlyMap<string, BaseTool>;
  /** Interactions by name. Null or left out: `interaction_kwargs` of rows is ignored. */
  interactions?: ReadonlyMap<string, BaseInteraction> | null;
  multiTurn: MultiTurnOptions;
  /** A function judges each trajectory separately. Null: rewards by data source judge, else interactions and tools. */
  reward: RewardFunction | RewardManager | null;
  /** Combines a trajectory's score and step rewards into its reward, once. Default: adds each unchanged. */
  aggregate?: RewardAggregator;
  /** Policy for conversations that the environment or the judge breaks; default "drop". */
  onFailure?: OnFailure;
  /** Settings of agents that call the policy themselves. */
  agent?: AgentOptions;
  /**
   * Limits of images, and the function that fetches web addresses; default: those of `loadImage`, and addresses are
   * refused.
   */
  images?: ImageAccess;
  /** Store the rendered prompt, as the model saw it, in `extraFields.full_prompt`. */
  returnFullPrompt?: boolean;
  /**
   * Returns a recorded conversation to replay, given the row's position among the rows; one per row. It replaces random
   * draws.
   */
  replay?: (position: number) => ConversationReplay;
  /** Number of samples of each row without its own number. */
  n: number;
  /**
   * Grows the samples of each row as trees, for the built-in loop. Each has 1 + rounds x expansions samples, and the
   * number of a row's samples is a multiple of that. Null or left out: each sample begins at the prompt.
   */
  tree?: TreeOptions | null;
  /**
   * Measures the value of each turn, for the built-in loop: from its end further conversations go on, whose mean reward
   * it is. They are no samples of the row. Null or left out: nothing is measured.
   */
  turnValues?: TurnValueOptions | null;
  /** Stop strings; each ends a turn. Default none. */
  stop?: readonly string[];
  /** Maximum number of tokens per turn; default null: the rest of `responseLength`. */
  maxTokensPerTurn?: number | null;
  /** Seeds every random draw, together with `step`, row and sample. */
  seed: number;
  step: number;
  maxPromptLength: number;
  responseLength: number;
  truncation: Truncation;
  defaultAgentLoop: string;
  /** Loops by name; default: built-in and registered ones. */
  agentLoops?: Registry<AgentLoopEntry>;
  /** Reward functions by `data_source`, used if `reward` is null; default: built-in and registered ones. */
  rewards?: Registry<RewardFunction>;
  /**
   * Runs a conversation elsewhere, with `holdConversation`; `here` runs it in this process. Given the same weights
   * and environment, the result is the same in both places. It is judged in this process. Default: `here`.
   */
  converse?: (
    work: ConversationWork,
    here: () => Promise<UnjudgedTrajectory>,
    /** The conversation's trace, to continue in the other process as `parent`. Empty without a tracer. */
    trace: TraceCarrier,
  ) => Promise<UnjudgedTrajectory>;
  /**
   * Records what tools, interactions and judges of single conversations answer, and gives what an earlier process
   * recorded. Default: nothing is recorded.
   */
  journal?: AnswerJournal;
  /** Maximum number of concurrent conversations in this process. Default: as many as fit into the KV cache. */
  concurrency?: number;
  /** Instead of `concurrency`: places shared with other rollouts of this process. The earliest step has priority. */
  slots?: Semaphore;
  /**
   * Number of weight updates the policy has had, plus 1; default: `step`, as if each step is sampled right after the
   * previous update.
   */
  policyVersion?: number;
  /**
   * Chooses who samples a turn, whoever sampled the earlier ones: another version of the policy, or a teacher; null:
   * the engine. Asked when the turn begins, perhaps twice. For built-in loops; agents and loops of users are sampled by
   * the engine. Default: the engine samples all turns.
   */
  choose?: (turn: BeginningTurn) => SamplingPolicy | null;
  signal?: AbortSignal;
  /** Traces each episode; default: no tracing, at no cost. */
  tracer?: Tracer;
  /** Parent span of the episodes, from another process. Default: each episode is a trace of its own. */
  parent?: TraceCarrier;
  /** Called with warnings, once for each kind. */
  onWarning?: (warning: string) => void;
  /** Called with each state that a conversation enters; a conversation that is sampled again starts over. */
  onState?: OnRequestState;
  /** Called with each trajectory as soon as it is judged. */
  onTrajectory?: (trajectory: Trajectory) => void;
}

/** The loop that a row names, else the default one. @throws ConfigError for an unknown name. */
export function findLoop(
  row: DatasetRow,
  { agentLoops: loops = agentLoops, defaultAgentLoop }: RolloutOptions,
): AgentLoopEntry {
  return loops.get(row.agentName ?? defaultAgentLoop);
}
