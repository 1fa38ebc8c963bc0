export { type DumpContext, describeTrajectories, type TokenDetails } from "./dump/describe-trajectories.js";
export { DumpImages } from "./dump/dump-images.js";
export type { DumpCall, DumpImage, DumpLine, DumpSpan, DumpTurn } from "./dump/dump-line.js";
export { type JudgeAgainOptions, type JudgedAgain, judgeAgain } from "./dump/judge-again.js";
export {
  makeTrainingMessages,
  type TrainingMessages,
  type TrainingMessagesOptions,
} from "./dump/make-training-messages.js";
export { readDump } from "./dump/read-dump.js";
export { writeDump } from "./dump/write-dump.js";
export { type Filter, parseFilter } from "./filter/parse-filter.js";
export { type ClusterView, clusterViewSchema } from "./live/cluster-view.js";
export type { LivePhase, LiveState } from "./live/live-state.js";
export { type AnswerRecord, RecordedAnswers, type RecordedAnswersOptions } from "./replay/recorded-answers.js";
export { RecordedTokens, type TokenRecord } from "./replay/recorded-tokens.js";
export { type Change, Steering } from "./replay/steered-sequence.js";
