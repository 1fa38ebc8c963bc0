export * from "./cluster.js";
export * from "./events.js";
export * from "./lists.js";
export * from "./model.js";
export * from "./runs.js";
export * from "./steps.js";
