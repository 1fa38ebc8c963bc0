export { AddedTokens } from "./added-tokens.js";
export { BundledVocabulary, createLlamaTemplate } from "./bundled-vocabulary.js";
export { listBundledTemplates, readBundledTemplate } from "./llama-bundle.js";
