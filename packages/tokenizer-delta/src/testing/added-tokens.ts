import type { SpecialToken } from "@cria/core";
import type { TextTokenizer } from "../text-tokenizer.js";

const FIRST_ADDED = 1_000_000;

/**
 * A vocabulary with additional special tokens, as a model's own vocabulary includes those of its template. Special
 * tokens divide a text before anything else happens, in llama.cpp too, so this equals a vocabulary that includes them.
 */
export class AddedTokens implements TextTokenizer {
  private readonly added: string[];
  private readonly pattern: RegExp | null;

  constructor(
    private readonly vocabulary: TextTokenizer,
    tokens: readonly string[],
  ) {
    this.added = tokens.filter((text) => vocabulary.tokenize(text).length !== 1);
    const longestFirst = [...this.added].sort((a, b) => b.length - a.length);
    const alternatives = longestFirst.map((text) => text.replace(/[|\\{}()[\]^$+*?./-]/g, "\\$&")).join("|");
    this.pattern = this.added.length > 0 ? new RegExp(`(${alternatives})`, "g") : null;
  }

  tokenize(text: string, options: { special?: boolean } = {}): Int32Array {
    if (!this.pattern || options.special === false) return this.vocabulary.tokenize(text, options);
    const ids: number[] = [];
    // Splitting by a pattern with a group keeps the separators, at odd indices.
    for (const [i, part] of text.split(this.pattern).entries()) {
      if (i % 2 === 1) ids.push(FIRST_ADDED + this.added.indexOf(part));
      else if (part !== "") for (const id of this.vocabulary.tokenize(part)) ids.push(id);
    }
    return Int32Array.from(ids);
  }

  listSpecialTokens(): SpecialToken[] {
    const added = this.added.map((text, i) => ({
      id: FIRST_ADDED + i,
      text,
      control: true,
      stripLeft: false,
      stripRight: false,
    }));
    return [...this.vocabulary.listSpecialTokens(), ...added];
  }

  detokenize(tokenIds: ArrayLike<number>, options: { special?: boolean } = {}): string {
    let text = "";
    let run: number[] = [];
    const flush = () => {
      if (run.length > 0) text += this.vocabulary.detokenize(run, options);
      run = [];
    };
    for (let i = 0; i < tokenIds.length; i++) {
      const id = tokenIds[i]!;
      if (id < FIRST_ADDED) {
        run.push(id);
        continue;
      }
      flush();
      if (options.special !== false) text += this.added[id - FIRST_ADDED] ?? "";
    }
    flush();
    return text;
  }
}
