export type { FetchOptions, HubProgress } from "./hub-repository.js";
export { type HubSettings, readHubSettings } from "./hub-settings.js";
export { isAddress } from "./parse-address.js";
export { resolveData } from "./resolve-data.js";
export { type ResolveModelOptions, resolveModel, resolveProjector } from "./resolve-model.js";
