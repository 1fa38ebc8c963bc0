export type { ClusterView, CountsByKind, LiveState, WorkerState, WorkerView } from "@cria/records";
export * from "./events.js";
export * from "./lists.js";
export * from "./model.js";
export * from "./runs.js";
export * from "./steps.js";
