import type {
  AgentState,
  ChatMessage,
  FinishReason,
  ImageSource,
  LoadedImage,
  PolicyEngine,
  PolicySequence,
  RequestState,
  StateTransition,
  TrajectorySampling,
  TurnRecord,
} from "@cria/core";
import type { RecordedCall, UnjudgedTrajectory } from "@cria/episodes";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { BaseInteraction, BaseTool, GivenToolFormat, ParsedToolCall } from "@cria/tools";
import type { DatasetRow } from "../data/dataset-row.js";
import type { ImageAccess } from "../images/load-content.js";
import type { TraceScope } from "../tracing/tracer.js";
import type { AgentOptions } from "./agent-options.js";
import type { ConversationJournal } from "./answer-journal.js";
import type { GrowingBranch } from "./growing-branch.js";
import type { StateLog } from "./state-log.js";
import type { TruncateSide } from "./truncate-text.js";

export interface MultiTurnOptions {
  /** Maximum number of assistant turns; null: no limit. */
  maxAssistantTurns: number | null;
  maxUserTurns: number | null;
  maxParallelCalls: number;
  /** Maximum length of a tool response, in tokens. */
  maxToolResponseLength: number;
  /** Maximum length of a tool response, in characters; 0: no limit. */
  maxToolResponseChars: number;
  toolResponseTruncateSide: TruncateSide;
  /** Tool-call format of the policy: a format, its name, or a parser. */
  format: GivenToolFormat;
  /** Timeout for each call of a tool or an interaction, in seconds. */
  toolTimeoutS: number;
  tokenizationSanityCheckMode: "strict" | "ignore_strippable" | "disable";
  /**
   * True: each turn sees the conversation as the template renders it in production, which may rewrite earlier turns.
   */
  useInferenceChatTemplate: boolean;
  /** An interaction replies when the number of assistant turns is a multiple of this; otherwise the answer is final. */
  interactionInterval: number;
  /** Probability of that reply, in [0, 1]; drawn with the trajectory's seed. */
  interactionProb: number;
  /** false: tokens of tool calls get mask 0. */
  trainOnToolCalls: boolean;
}

export const defaultMultiTurn: MultiTurnOptions = {
  maxAssistantTurns: null,
  maxUserTurns: null,
  maxParallelCalls: 1,
  maxToolResponseLength: 256,
  maxToolResponseChars: 0,
  toolResponseTruncateSide: "middle",
  format: "hermes",
  toolTimeoutS: 30,
  tokenizationSanityCheckMode: "strict",
  useInferenceChatTemplate: false,
  interactionInterval: 1,
  interactionProb: 1,
  trainOnToolCalls: true,
};

export interface SamplingParams extends TrajectorySampling {
  /** Stop strings; each ends a turn and stays in it. */
  stop: readonly string[];
  /** Maximum number of tokens per turn; null: the rest of the response. */
  maxTokensPerTurn: number | null;
}

/** The seed from which a turn derives its own. @param index index of the assistant's turn, from 0. */
export function seedOfTurn(
  { seed, earlierSeeds }: Pick<SamplingParams, "seed" | "earlierSeeds">,
  index: number,
): number {
  return earlierSeeds?.[index] ?? seed;
}

/** Messages that follow an assistant's turn, or the reason why the conversation ends. */
export type NextTurn =
  | ({ role: "tool" | "user"; messages: ChatMessage[]; startedAt: number } & Pick<TurnRecord, "failures" | "state">)
  | FinishReason;

/** A completed turn of the assistant. */
export interface SaidTurn {
  /** Turn number, from 1. */
  number: number;
  text: string;
  /** Tool calls of the turn. Empty: an interaction replies, or nobody. */
  calls: readonly ParsedToolCall[];
  /** True if a reply is due: there are calls and turns left, or an interaction's turn has come. */
  isAwaited: boolean;
}

/**
 * Source of replies that replaces tools and interaction, or supplements them; used to replay recorded conversations.
 */
export interface AnswerSource {
  /** True: tools and interaction take part. False: they are neither created, called nor scored. */
  readonly isLive: boolean;
  /** @param live calls the tools or the interaction; must not be called for an awaited turn unless `isLive`. */
  follow(turn: SaidTurn, live: () => Promise<NextTurn>): Promise<NextTurn>;
}

/** Argument of an agent loop: everything it uses for one conversation. */
export interface AgentLoopContext {
  engine: Pick<PolicyEngine, "tokenize" | "detokenize" | "info" | "images" | "createSequence" | "roles">;
  tokenizer: DeltaTokenizer;
  tools: ReadonlyMap<string, BaseTool>;
  /** Interactions by name; null: the run has none, and rows' requests for one are ignored. */
  interactions: ReadonlyMap<string, BaseInteraction> | null;
  multiTurn: MultiTurnOptions;
  /** Maximum number of tokens after the prompt, over all turns. */
  responseLength: number;
  /** Maximum number of tokens of a whole conversation, prompt included. */
  contextLength: number;
  /** Replies instead of tools and interaction; default: those reply. */
  answers?: AnswerSource;
  /** Records what tools and interaction answer; default: nothing is recorded. */
  journal?: ConversationJournal;
  /** The conversation as one of a tree; default: it belongs to none. */
  branch?: Pick<GrowingBranch, "reach">;
  /** Recorded calls to repeat instead of running the agent's code; default: the code runs. */
  calls?: readonly RecordedCall[];
  /** Limits of images, and the function that fetches web addresses. */
  imageAccess: ImageAccess;
  /**
   * Loads an image for a message, `{ type: "image", image }`, within the run's limits. Paths are relative to the
   * working directory; web addresses need `data.fetch_images`. Keep a reference to it while its tokens are in use;
   * later they are in `Trajectory.images`.
   * @throws DataError "data/bad-image", which fails only this conversation.
   */
  loadImage: (source: ImageSource) => Promise<LoadedImage>;
  /** Settings of agents that call the policy themselves. */
  agent: AgentOptions;
  /** Number of weight updates the policy has had. */
  policyVersion: number;
  /**
   * A sequence that already holds the prompt, or an empty one if the loop's traits say `prompt: false`. The caller
   * disposes of it.
   */
  sequence: PolicySequence;
  promptIds: Int32Array;
  /** False if `data.truncation` cut `promptIds`. */
  promptIsWhole: boolean;
  /**
   * State of the request: "running" when the loop begins; the loop reports when it waits for a tool or an
   * interaction.
   */
  request: StateLog<RequestState>;
  /** Tracing scope for the episode's spans; default: no tracing. */
  trace?: TraceScope;
  signal?: AbortSignal;
  /** Called with warnings for the user. */
  onWarning?: (warning: string) => void;
}

/**
 * Output of an agent loop. Five fields are required: tokens, prompt length, mask, number of turns and metrics. All
 * fields are checked: untrainable output is a mistake in the loop and ends the run. Token indices count from the first
 * token of the prompt. Defaults: the conversation has no rewards, no score and no extra fields, is one segment, has the
 * task's tools, and ended with "stop"; its messages are the prompt, and each stretch with mask 1 as an assistant's.
 * `score` is the loop's own, which a reward function of the task overrides. With an `error` the conversation is
 * recorded without a reward and not trained on.
 */
export interface AgentLoopOutput
  extends Pick<UnjudgedTrajectory, "promptLength" | "numTurns" | "metrics">,
    Partial<
      Pick<
        UnjudgedTrajectory,
        | "turnScores"
        | "toolRewards"
        | "segments"
        | "toolSchemas"
        | "score"
        | "toolScore"
        | "interactionScore"
        | "scoreError"
        | "messages"
        | "finishReason"
        | "extraFields"
        | "error"
      >
    > {
  /** The prompt, then the response of at most `responseLength` tokens. Images are included as they were placed. */
  tokenIds: ArrayLike<number>;
  /** 1 = sampled by the policy; as long as `tokenIds`, 0 for the prompt. */
  responseMask: ArrayLike<number>;
  /**
   * Log-probabilities by the sampler, as long as `tokenIds`; values at mask 0 are ignored. Default: the policy
   * scores the response again, which gives the same values; `rescored_tokens` counts these tokens.
   */
  rolloutLogprobs?: ArrayLike<number>;
  /** State transitions of the loop, if it has any. */
  transitions?: StateTransition<AgentState>[];
  /** Default: none. */
  turns?: TurnRecord[];
}

/**
 * Runs one episode. A bad rollout is data: mistakes of tools, interactions and texts are recorded in the output. A
 * loop that throws gives a failed trajectory, except for errors of config and engine, which end the run.
 */
export interface AgentLoop {
  run(sampling: SamplingParams, row: DatasetRow): Promise<AgentLoopOutput>;
}

export type AgentLoopFactory = (context: AgentLoopContext) => AgentLoop;

export interface AgentLoopTraits {
  /** True: it begins with the row's prompt, rendered and evaluated once per group. Default true. */
  prompt?: boolean;
  /** True: its prompts describe the tools. Default true. */
  tools?: boolean;
  /** True: rows may name an interaction. Default true. */
  interactions?: boolean;
  /** True: it may score its conversations itself, so that rows need no other reward. Default true. */
  scores?: boolean;
}
