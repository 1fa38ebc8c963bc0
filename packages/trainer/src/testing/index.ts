export * from "./chat-server.js";
export * from "./drop-times.js";
export * from "./fake-training.js";
export * from "./play-task.js";
export * from "./tiny-training.js";
export * from "./watch-calls.js";
