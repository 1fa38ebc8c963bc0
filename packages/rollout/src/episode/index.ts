export { Conversation, type EarnedReward, placeRewards } from "./conversation.js";
export { type EpisodePlace, findEpisode } from "./episode-place.js";
export { findOpening } from "./find-opening.js";
export { type BranchCredit, type LaidOutGraph, type LayOutOptions, layOutGraph } from "./lay-out-graph.js";
export {
  type AnswerNode,
  type InputNode,
  isAnswer,
  listAnswers,
  listPath,
  MessageGraph,
  type Said,
} from "./message-graph.js";
export { type ReadTurn, readTurn, type TurnEnd } from "./read-turn.js";
