export * from "./chat-model.js";
export { readAnswer } from "./read-answer.js";
export { TurnStream } from "./turn-stream.js";
