export type { AgentEndpoint, SessionAddress } from "./agent-endpoint.js";
export {
  type AgentLoop,
  type AgentLoopContext,
  type AgentLoopFactory,
  type AgentLoopOutput,
  type AgentLoopTraits,
  type AnswerSource,
  defaultMultiTurn,
  type MultiTurnOptions,
  type NextTurn,
  type SaidTurn,
  type SamplingParams,
} from "./agent-loop.js";
export { type AgentLoopEntry, agentLoops, registerAgentLoop } from "./agent-loops.js";
export { type AgentOptions, defaultAgentOptions, type MakeAgentModel } from "./agent-options.js";
export { type AnsweredCall, CallAnswers } from "./answer-calls.js";
export type { AnswerJournal, ConversationJournal, JournalPlace, JournalQuestion } from "./answer-journal.js";
export { checkTreeSamples } from "./check-branches.js";
export { checkRowHasReward, type PossibleScores } from "./check-row-has-reward.js";
export { selectInteraction } from "./episode-interaction.js";
export { EpisodeTools, scoresConversations } from "./episode-tools.js";
export { makeAllFailedError, makeNeverCalledError, type OnFailure } from "./failures.js";
export { type ConversationEnvironment, holdConversation } from "./hold-conversation.js";
export { loopCounters, loopMeasures } from "./loop-counters.js";
export type { BeginningTurn, ConversationReplay, ConversationWork, RolloutOptions } from "./rollout-options.js";
export { type EndedRollouts, runRollouts, startRollouts } from "./run-rollouts.js";
export { Semaphore } from "./semaphore.js";
export { createAgentLog, createRequestLog, type OnRequestState, StateLog } from "./state-log.js";
export type { SamplingPolicy } from "./switching-sequence.js";
export { ToolAgentLoop } from "./tool-agent-loop.js";
export { countLeaves, type TreeOptions } from "./tree-options.js";
export type { TruncateSide } from "./truncate-text.js";
export type { TurnValueOptions } from "./turn-values.js";
