export { ChatTemplate, type RenderOptions } from "./chat-template.js";
export { type ConversationToCheck, checkConversation } from "./check-conversation.js";
export { checkTokenization, type SanityCheckMode, type TokenizationCheck } from "./check-tokenization.js";
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
export { defaultRenderLimits, type RenderLimits } from "./render-limits.js";
export { ownText, type RenderedImage, type RenderedText } from "./rendered-text.js";
export type { TextTokenizer } from "./text-tokenizer.js";
