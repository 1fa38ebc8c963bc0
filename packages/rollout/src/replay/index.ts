export { type AnswerRecord, makeReadCalls, RecordedAnswers, type RecordedAnswersOptions } from "./recorded-answers.js";
export { type Change, Steering } from "./steered-sequence.js";
