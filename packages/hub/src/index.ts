export type { FetchOptions, HubProgress } from "./hub-repository.js";
export type { HubSettings } from "./hub-settings.js";

export { resolveData } from "./resolve-data.js";
export { type ResolveModelOptions, resolveModel } from "./resolve-model.js";
