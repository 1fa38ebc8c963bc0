export { ChatTemplate, type RenderOptions } from "./chat-template.js";
export { type ConversationToCheck, checkConversation } from "./check-conversation.js";
export type { SanityCheckMode, TokenizationCheck } from "./check-tokenization.js";
export {
  type AssistantTokens,
  DeltaTokenizer,
  type DeltaTokenizerOptions,
  type ModelTokenizerOptions,
  type OnUnsplit,
  type TokenizedModel,
} from "./delta-tokenizer.js";
export { type EncodedTurn, InferenceConversation } from "./inference-conversation.js";
export type { ImagePlacer } from "./piece-tokenizer.js";
export type { RenderLimits } from "./render-limits.js";
export type { RenderedImage, RenderedText } from "./rendered-text.js";
export type { TextTokenizer } from "./text-tokenizer.js";
