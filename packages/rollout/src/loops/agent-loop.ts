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
  ToolSchema,
  TrajectorySegment,
  TurnRecord,
} from "@cria/core";
import type { RecordedCall } from "@cria/episodes";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { BaseInteraction, BaseTool, GivenToolFormat, ParsedToolCall } from "@cria/tools";
import type { DatasetRow } from "../data/dataset-row.js";
import type { ImageAccess } from "../images/load-content.js";
import type { TraceScope } from "../tracing/tracer.js";
import type { AgentOptions } from "./agent-options.js";
import type { StateLog } from "./state-log.js";
import type { TruncateSide } from "./truncate-text.js";

export interface MultiTurnOptions {
  /** Null: no limit. */
  maxAssistantTurns: number | null;
  maxUserTurns: number | null;
  maxParallelCalls: number;
  /** In tokens. */
  maxToolResponseLength: number;
  /** In characters; 0: no limit. */
  maxToolResponseChars: number;
  toolResponseTruncateSide: TruncateSide;
  /** How the policy writes tool calls: a format, its name, or a parser. */
  format: GivenToolFormat;
  /** Seconds that any call of a tool or an interaction may take. */
  toolTimeoutS: number;
  tokenizationSanityCheckMode: "strict" | "ignore_strippable" | "disable";
  /** Each turn sees the conversation as the template renders it in production, earlier turns rewritten. */
  useInferenceChatTemplate: boolean;
  /** An interaction answers when the number of assistant turns is a multiple of this; otherwise an answer is final. */
  interactionInterval: number;
  /** Chance that it then does; drawn by the trajectory's seed. */
  interactionProb: number;
  /** false: the text of tool calls has mask 0. */
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

export interface SamplingParams {
  temperature: number;
  topP: number;
  topK: number;
  /** Min-p: do not sample tokens whose probability is below this share of the likeliest token's; 0: no limit. */
  minP: number;
  /** Texts that end a turn; each stays in it. */
  stop: readonly string[];
  /** Most tokens of one turn; null: the rest of the response. */
  maxTokensPerTurn: number | null;
  /** The trajectory's seed; each turn derives its own. */
  seed: number;
}

/** What follows an assistant's turn: what others say, or why nobody does. */
export type NextTurn =
  | ({ role: "tool" | "user"; messages: ChatMessage[]; startedAt: number } & Pick<TurnRecord, "failures" | "state">)
  | FinishReason;

/** An assistant's turn that is over. */
export interface SaidTurn {
  /** From 1. */
  number: number;
  text: string;
  /** None: an interaction answers, or nobody. */
  calls: readonly ParsedToolCall[];
  /** Whether somebody would answer: there are calls and turns are left, or an interaction is due. */
  isAwaited: boolean;
}

/** Answers in the place of tools and interaction, or beside them, as where a recorded conversation is held again. */
export interface AnswerSource {
  /** Whether tools and interaction take part: else they are not created, asked or scored. */
  readonly isLive: boolean;
  /** @param live asks tools or the interaction; not to be called for an awaited turn unless `isLive`. */
  follow(turn: SaidTurn, live: () => Promise<NextTurn>): Promise<NextTurn>;
}

/** What an agent loop works with. */
export interface AgentLoopContext {
  engine: Pick<PolicyEngine, "tokenize" | "detokenize" | "info" | "images" | "createSequence">;
  tokenizer: DeltaTokenizer;
  tools: ReadonlyMap<string, BaseTool>;
  /** By name; null when the run has none, whatever rows say. */
  interactions: ReadonlyMap<string, BaseInteraction> | null;
  multiTurn: MultiTurnOptions;
  /** Most tokens after the prompt, over all turns. */
  responseLength: number;
  /** Most tokens of a whole conversation, its prompt included. */
  contextLength: number;
  /** Who answers instead of tools and interaction; left out: they do. */
  answers?: AnswerSource;
  /** What an agent asked the policy, in the place of its code; left out: it asks. */
  calls?: readonly RecordedCall[];
  /** Limits of images, and what fetches addresses. */
  imageAccess: ImageAccess;
  /**
   * An image for a message, `{ type: "image", image }`, under the run's limits; paths begin in the working directory, addresses are
   * fetched where `data.fetch_images` is on. Keep it as long as its tokens: they are in `Trajectory.images` then.
   * @throws DataError "data/bad-image", which fails the conversation alone.
   */
  loadImage: (source: ImageSource) => Promise<LoadedImage>;
  /** For agents that call the policy by themselves. */
  agent: AgentOptions;
  /** Updates that the policy has seen. */
  policyVersion: number;
  /** A sequence that already holds the prompt; an empty one for a loop without (traits). The caller disposes it. */
  sequence: PolicySequence;
  promptIds: Int32Array;
  /** Whether `promptIds` is the whole prompt, or what `data.truncation` left of it. */
  promptIsWhole: boolean;
  /** State of the request: running when the loop begins; the loop tells when it waits for a tool or an interaction. */
  request: StateLog<RequestState>;
  /** Where the episode's spans go; left out: it is not traced. */
  trace?: TraceScope;
  signal?: AbortSignal;
  /** Takes what a user should know, in words. */
  onWarning?: (warning: string) => void;
}

/**
 * What an agent loop returns. Five fields are required; the others say their defaults. All fields are checked: output
 * that cannot be trained on is a mistake in the loop, and ends the run. Token indices count from the first token of the
 * prompt.
 */
export interface AgentLoopOutput {
  /** The prompt, then everything that followed: at most `responseLength` tokens more. Images stand there as they were placed. */
  tokenIds: ArrayLike<number>;
  /** How many of `tokenIds` are the prompt. */
  promptLength: number;
  /** 1 = sampled by the policy; as long as `tokenIds`, 0 for the prompt. */
  responseMask: ArrayLike<number>;
  /** Assistant turns plus the turns of tools and users after the prompt. */
  numTurns: number;
  metrics: Record<string, number>;
  /**
   * As the sampler gave them, as long as `tokenIds`; values at mask 0 are ignored. Default: the policy scores the
   * response once more, which gives what its sampler would have given; `rescored_tokens` counts these tokens.
   */
  rolloutLogprobs?: ArrayLike<number>;
  /** `tokenIndex` names a token with mask 1. Default: none. */
  turnScores?: { value: number; tokenIndex: number }[];
  toolRewards?: { value: number; tokenIndex: number }[];
  /** Where an episode has several conversations: how `tokenIds` hang together. Default: they are one. */
  segments?: TrajectorySegment[];
  /** Tools of the conversation, where the loop does not take those of the task. */
  toolSchemas?: readonly ToolSchema[];
  /** The loop's own judgement; a reward function of the task goes before it. Default: null, none. */
  score?: number | null;
  /** Sum over tools of calcReward; null (default) when no tool has one, or one failed. */
  toolScore?: number | null;
  /** The interaction's calculateScore; null (default) when there was no interaction, or it failed. */
  interactionScore?: number | null;
  /** Why one of them failed. If nothing else judges the conversation, it then counts as failed. */
  scoreError?: string;
  /** Default: the prompt, and each stretch with mask 1 as the text of an assistant's message. */
  messages?: ChatMessage[];
  /** Default: stop. */
  finishReason?: FinishReason;
  /** Free-form, of what JSON can hold. Default: empty. */
  extraFields?: Record<string, unknown>;
  /** States of the loop, where it has any. */
  transitions?: StateTransition<AgentState>[];
  /** Default: none. */
  turns?: TurnRecord[];
  /** Why the conversation failed: it is then kept, worth nothing, and nothing in it is trained on. */
  error?: string;
}

/**
 * Runs one episode. A bad rollout is data: mistakes of tools, interactions and texts end in the output. A loop that
 * throws is recorded as a failed trajectory too, except for errors of the config and of the engine, which end the run.
 */
export interface AgentLoop {
  run(sampling: SamplingParams, row: DatasetRow): Promise<AgentLoopOutput>;
}

export type AgentLoopFactory = (context: AgentLoopContext) => AgentLoop;

export interface AgentLoopTraits {
  /** Whether it begins with the row's prompt, which is then rendered and evaluated once for a group. Default true. */
  prompt?: boolean;
  /** Whether its prompts describe the tools. Default true. */
  tools?: boolean;
  /** Whether rows may name an interaction. Default true. */
  interactions?: boolean;
  /** Whether it may score its conversations itself, so that rows need no other reward. Default true. */
  scores?: boolean;
}
