import type { SpecialToken } from "@cria/core";

/** What delta tokenization needs of a model; every PolicyEngine has it. */
export interface TextTokenizer {
  /** `special` (default true) lets text like `<|im_end|>` become its special token. */
  tokenize(text: string, options?: { special?: boolean }): Int32Array;
  /** The same beside the event loop, for long texts; absent where texts take no time. */
  tokenizeAside?(text: string, options?: { special?: boolean }): Promise<Int32Array>;
  /** `special` (default true) writes special tokens out. */
  detokenize(tokenIds: ArrayLike<number>, options?: { special?: boolean }): string;
  /** Control tokens and user-defined tokens of the vocabulary. */
  listSpecialTokens(): readonly SpecialToken[];
}
