export { findOtherText } from "./find-other-text.js";
export {
  type AnswerRecord,
  makeReadCalls,
  RecordedAnswers,
  type RecordedAnswersOptions,
} from "./recorded-answers.js";
export { listLineCalls } from "./recorded-calls.js";
export { RecordedTokens, type TokenRecord } from "./recorded-tokens.js";
export { type Change, Steering } from "./steered-sequence.js";
