export type { ClusterView, LiveState } from "@cria/records";
export type { CountsByKind, WorkerState, WorkerView } from "@cria/records/internal";
export * from "./events.js";
export * from "./lists.js";
export * from "./model.js";
export * from "./runs.js";
export * from "./steps.js";
