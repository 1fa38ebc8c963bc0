export type { CriaMetadata } from "./describe-answer.js";
export { languageModel } from "./language-model.js";
export { type CriaProvider, createProvider, type OpenedChat, type ProviderOptions } from "./provider.js";
export type { CriaCallOptions } from "./read-call-options.js";
