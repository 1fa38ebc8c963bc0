// For the other packages of Cria: names of the package that are no part of its interface, and change without notice. `index.ts` has what
// users' programs need.

export { runAgentEpisode } from "./agents/agent-episode.js";
export type { AgentFunction } from "./agents/agent-function.js";
export { makeCommandAgent } from "./agents/command-agent-loop.js";
export { makeFunctionAgent } from "./agents/function-agent-loop.js";
export { loadGivenImage } from "./chat/load-request.js";
export { readAnswer } from "./chat/read-answer.js";
export { TurnStream } from "./chat/turn-stream.js";
export { checkProjector, checkSources } from "./data/check-images.js";
export { hashUids } from "./data/data-loader.js";
export { copyRow, parseRow } from "./data/dataset-row.js";
export { gsm8kShapes } from "./data/gsm8k.js";
export { loadExport } from "./data/load-export.js";
export { loadRow } from "./data/load-row.js";
export { makeGroupSampler, pickGroups } from "./data/make-group-sampler.js";
export { makeRowSampler, pickRows } from "./data/make-row-sampler.js";
export { messageSchema } from "./data/message-schema.js";
export { haveImages, placeImages, readImages } from "./data/place-images.js";
export { measurePrompts } from "./data/prompt-lengths.js";
export { checkDatasetClass } from "./data/rollout-dataset.js";
export { countConversations, isSampleCount, MOST_SAMPLES, sampleOnce, samplesOf } from "./data/row-samples.js";
export { listToolSchemas, selectTools } from "./data/select-tools.js";
export { findImages, hideVectors, showVectors, VECTOR } from "./images/find-images.js";
export { loadContent, loadMessages } from "./images/load-content.js";
export { prepareImages } from "./images/prepare-images.js";
export * from "./index.js";
export { defaultMultiTurn } from "./loops/agent-loop.js";
export { defaultAgentOptions } from "./loops/agent-options.js";
export { type AnsweredCall, CallAnswers } from "./loops/answer-calls.js";
export { checkTreeSamples } from "./loops/check-branches.js";
export { checkRowHasReward, type PossibleScores } from "./loops/check-row-has-reward.js";
export { selectInteraction } from "./loops/episode-interaction.js";
export { EpisodeTools, scoresConversations } from "./loops/episode-tools.js";
export { makeAllFailedError, makeNeverCalledError } from "./loops/failures.js";
export { fitPrompt } from "./loops/fit-prompt.js";
export { type ConversationEnvironment, holdConversation } from "./loops/hold-conversation.js";
export { loopMeasures } from "./loops/loop-counters.js";
export { createAgentLog, createRequestLog } from "./loops/state-log.js";
export { countLeaves } from "./loops/tree-options.js";
export { describeData, toPlainData } from "./plain-data.js";
export {
  averageExtras,
  computeOverlongPenalty,
  countPromptMessages,
  extractFinalAnswer,
  type FoundToolCalls,
  findToolCalls,
  finishTrajectory,
  makeRewardRequest,
  maskToolCalls,
  placeAsEarned,
  RewardQueue,
  rewardFunctions,
  scoreFinalAnswer,
} from "./rewards/index.js";
export { takeTurn } from "./take-turn.js";
export { describeAnswers, describeModel, describeTimes, failSpan, type TracedAnswer } from "./tracing/trace-work.js";
