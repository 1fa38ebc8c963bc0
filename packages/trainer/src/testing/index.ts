export * from "./chat-server.js";
export * from "./drop-times.js";
export * from "./fake-session.js";
export * from "./play-task.js";
export * from "./tiny-session.js";
export * from "./watch-calls.js";
