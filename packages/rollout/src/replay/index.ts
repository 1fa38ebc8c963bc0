export {
  type AnswerRecord,
  makeReadCalls,
  RecordedAnswers,
  type RecordedAnswersOptions,
  replayedLoops,
} from "./recorded-answers.js";
export { type Change, Steering } from "./steered-sequence.js";
