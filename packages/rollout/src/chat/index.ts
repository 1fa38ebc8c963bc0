export * from "./chat-model.js";
