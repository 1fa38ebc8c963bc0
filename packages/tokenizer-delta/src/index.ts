export { ChatTemplate, type RenderOptions } from "./chat-template.js";
export { checkTokenization, type SanityCheckMode, type TokenizationCheck } from "./check-tokenization.js";
export { DeltaTokenizer, type DeltaTokenizerOptions, type TextTokenizer } from "./delta-tokenizer.js";
