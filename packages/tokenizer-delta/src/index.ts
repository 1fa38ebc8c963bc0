export { ChatTemplate, type RenderOptions } from "./chat-template.js";
export { type ConversationToCheck, checkConversation } from "./check-conversation.js";
export { checkTokenization, type SanityCheckMode, type TokenizationCheck } from "./check-tokenization.js";
export { type AssistantTokens, DeltaTokenizer, type DeltaTokenizerOptions } from "./delta-tokenizer.js";
export { type EncodedTurn, InferenceConversation } from "./inference-conversation.js";
export type { TextTokenizer } from "./text-tokenizer.js";
