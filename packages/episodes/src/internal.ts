// For the other packages of Cria: names of the package that are no part of its interface, and change without notice. `index.ts` has what
// users' programs need.

export { checkSpan } from "./check-layout.js";
export { runInEpisode, runOutsideEpisodes } from "./episode-place.js";
export { findCallTokens } from "./find-call-tokens.js";
export { findOpening } from "./find-opening.js";
export * from "./index.js";
export { type CallRecord, listCalls } from "./list-calls.js";
export { isAnswer, joinTokens, listAnswers, listPath } from "./message-graph.js";
export { hashValue } from "./message-key.js";
export { asItCame, isImage, messagesSchema } from "./message-schema.js";
export { formAnswer, nameCalls } from "./template-messages.js";
export { readFields } from "./trajectory-schema.js";
export { nameId } from "./turn-form.js";
export { isUsableNumber, largestNumber, usableNumber } from "./usable-number.js";
