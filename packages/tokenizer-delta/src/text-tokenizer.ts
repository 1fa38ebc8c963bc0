/** What delta tokenization needs of a model; every PolicyEngine has it. */
export interface TextTokenizer {
  /** `special` (default true) lets text like `<|im_end|>` become its special token. */
  tokenize(text: string, options?: { special?: boolean }): Int32Array;
  /** `special` (default true) writes special tokens out. */
  detokenize(tokenIds: ArrayLike<number>, options?: { special?: boolean }): string;
}

/**
 * Tells special tokens from those of ordinary text. Text before and after a special token is tokenized apart, so the
 * places beside them are where tokens can be joined without changing what a tokenizer would have made of the whole.
 */
export class SpecialTokens {
  private readonly texts = new Map<number, string | null>();

  constructor(private readonly tokenizer: TextTokenizer) {}

  /** The text of a special token, null for an ordinary one. */
  textOf(id: number): string | null {
    let text = this.texts.get(id);
    if (text === undefined) {
      const written = this.tokenizer.detokenize([id]);
      text = written !== "" && this.tokenizer.detokenize([id], { special: false }) === "" ? written : null;
      this.texts.set(id, text);
    }
    return text;
  }
}
