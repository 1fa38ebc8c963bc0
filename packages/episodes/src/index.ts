export { checkEpisode } from "./check-episode.js";
export { checkLayout, checkSpan, type LayoutLimits } from "./check-layout.js";
export { Conversation, type EarnedReward, placeRewards } from "./conversation.js";
export { type EpisodePlace, findEpisode, runInEpisode, runOutsideEpisodes } from "./episode-place.js";
export { findCallTokens } from "./find-call-tokens.js";
export { findOpening } from "./find-opening.js";
export { type BranchCredit, type LaidOutGraph, type LayOutOptions, layOutGraph } from "./lay-out-graph.js";
export { type CallRecord, listCalls, type RecordedCall } from "./list-calls.js";
export {
  type AnswerNode,
  countTokens,
  type InputNode,
  isAnswer,
  joinTokens,
  listAnswers,
  listPath,
  MessageGraph,
  type Place,
  type Said,
} from "./message-graph.js";
export { hashValue } from "./message-key.js";
export { asItCame, image, isImage, messagesSchema } from "./message-schema.js";
export { now } from "./now.js";
export { type ReadTurn, readTurn, type TurnEnd } from "./read-turn.js";
export { formAnswer, nameCalls } from "./template-messages.js";
export { type Refuse, readFields, trajectorySchema } from "./trajectory-schema.js";
export { findTurnForm, nameId, structureTurn, type TurnForm } from "./turn-form.js";
export type { UnjudgedTrajectory } from "./unjudged-trajectory.js";
export { isUsableNumber, largestNumber, usableNumber } from "./usable-number.js";
