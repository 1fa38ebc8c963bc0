export * from "./chat-model.js";
export { ChatPool, type ChatPoolOptions } from "./chat-pool.js";
export { type ChatCounter, type ChatLimits, ChatSession, type ChatSessionOptions } from "./chat-session.js";
export { loadGivenImage } from "./load-request.js";
export { readAnswer } from "./read-answer.js";
export type { RoleRewards } from "./role-rewards.js";
export { TurnStream } from "./turn-stream.js";
