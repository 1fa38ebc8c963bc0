export type { AgentContext, AgentResult } from "./agents/agent-function.js";
export { type AgentLoopConfigEntry, loadAgentLoops } from "./agents/load-agent-loops.js";
export type {
  ChatAnswer,
  ChatAnswerMessage,
  ChatEvent,
  ChatModel,
  ChatOptions,
  ChatRequest,
  ChatSampling,
  ChatToolCall,
  ChatUsage,
  ResponseFormat,
  ToolChoice,
} from "./chat/chat-model.js";
export { ChatPool, type ChatPoolOptions } from "./chat/chat-pool.js";
export { type ChatCounter, type ChatLimits, ChatSession, type ChatSessionOptions } from "./chat/chat-session.js";
export type { RoleRewards } from "./chat/role-rewards.js";
export { DataLoader, type DataLoaderPlace, type DataLoaderState } from "./data/data-loader.js";
export type { DatasetRow, ParseRowOptions } from "./data/dataset-row.js";
export { filterOverlongPrompts } from "./data/filter-overlong-prompts.js";
export type {
  BufferedGroup,
  GroupPicker,
  GroupRequest,
  GroupSampler,
  GroupSamplerClass,
  GroupSamplerOptions,
} from "./data/group-sampler.js";
export {
  type ConvertedFile,
  convertGsm8k,
  convertGsm8kRecord,
  type Gsm8kShape,
  type Gsm8kSplit,
} from "./data/gsm8k.js";
export { type LoadDatasetOptions, loadDataset } from "./data/load-dataset.js";
export { groupSamplers } from "./data/make-group-sampler.js";
export { rowSamplers } from "./data/make-row-sampler.js";
export { mapRecord, type RowMap } from "./data/map-record.js";
export type { MeasureOptions } from "./data/prompt-lengths.js";
export { type DatasetRecord, readRecords } from "./data/read-records.js";
export { type DatasetClass, RolloutDataset } from "./data/rollout-dataset.js";
export type {
  PickedRow,
  PickRequest,
  RowOutcome,
  RowPicker,
  RowSampler,
  RowSamplerClass,
  RowSamplerOptions,
  StepOutcome,
} from "./data/row-sampler.js";
export { type ParquetField, type ParquetFields, writeParquet } from "./data/write-parquet.js";
export type { ImageAccess } from "./images/load-content.js";
export type { AgentEndpoint, SessionAddress } from "./loops/agent-endpoint.js";
export type {
  AgentLoop,
  AgentLoopContext,
  AgentLoopFactory,
  AgentLoopOutput,
  AgentLoopTraits,
  AnswerSource,
  MultiTurnOptions,
  NextTurn,
  SaidTurn,
  SamplingParams,
} from "./loops/agent-loop.js";
export { type AgentLoopEntry, agentLoops, registerAgentLoop } from "./loops/agent-loops.js";
export type { AgentOptions, MakeAgentModel } from "./loops/agent-options.js";
export type { AnswerJournal, ConversationJournal, JournalPlace, JournalQuestion } from "./loops/answer-journal.js";
export type { OnFailure } from "./loops/failures.js";
export type { Truncation } from "./loops/fit-prompt.js";
export { loopCounters } from "./loops/loop-counters.js";
export type { BeginningTurn, ConversationReplay, ConversationWork, RolloutOptions } from "./loops/rollout-options.js";
export { type EndedConversations, runRollouts, startRollouts } from "./loops/run-rollouts.js";
export { Semaphore } from "./loops/semaphore.js";
export { type OnRequestState, StateLog } from "./loops/state-log.js";
export type { SamplingPolicy } from "./loops/switching-sequence.js";
export { ToolAgentLoop } from "./loops/tool-agent-loop.js";
export type { TreeOptions } from "./loops/tree-options.js";
export type { TruncateSide } from "./loops/truncate-text.js";
export type { TurnValueOptions } from "./loops/turn-values.js";
export {
  type BatchRewardFunction,
  type EarnedRewards,
  type Judgement,
  makeRewardManager,
  type OverlongBuffer,
  type RewardAggregator,
  type RewardFunction,
  type RewardInfo,
  type RewardManager,
  type RewardManagerFactory,
  type RewardManagerOptions,
  type RewardRequest,
  type RewardResult,
  registerReward,
  registerRewardManager,
  rewardManagers,
} from "./rewards/index.js";
export { openTracer } from "./tracing/open-tracer.js";
export { type AnswerTimes, describeSampling } from "./tracing/trace-work.js";
export type {
  SpanAttributes,
  SpanKind,
  SpanValue,
  TraceCarrier,
  Tracer,
  TraceScope,
  TraceSpan,
} from "./tracing/tracer.js";
