import type { SpecialToken } from "@cria/core";

/** The parts of a model that delta tokenization uses; every PolicyEngine has them. */
export interface TextTokenizer {
  /** `special` (default true) converts text such as `<|im_end|>` to its special token. */
  tokenize(text: string, options?: { special?: boolean }): Int32Array;
  /** The same off the event loop, for long texts; absent if tokenizing takes no time. */
  tokenizeAside?(text: string, options?: { special?: boolean }): Promise<Int32Array>;
  /** `special` (default true) includes the text of special tokens. */
  detokenize(tokenIds: ArrayLike<number>, options?: { special?: boolean }): string;
  /** Control tokens and user-defined tokens of the vocabulary. */
  listSpecialTokens(): readonly SpecialToken[];
}
