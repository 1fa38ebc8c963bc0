/** Stands for bytes that form no whole character: a token may end within one. */
const PARTIAL = "\uFFFD";
/**
 * Maximum length of a run of tokens, without the end of a character between them, that is examined token by token:
 * characters have at most four bytes.
 */
const LONGEST = 64;

/** Texts of tokens, cached. */
export class TokenTexts {
  private readonly known = new Map<number, string>();

  constructor(private readonly detokenize: (tokenIds: Int32Array) => string) {}

  /**
   * Finds the end of each token's text within the whole text, in UTF-16 units. A character made of several tokens
   * belongs to the last of them; so do invalid bytes.
   * @returns null if the token texts do not add up to the whole text, which no vocabulary of llama.cpp causes.
   */
  findEnds(tokenIds: Int32Array, text: string): number[] | null {
    const ends: number[] = [];
    let at = 0;
    for (let t = 0; t < tokenIds.length; ) {
      const piece = this.read(tokenIds[t]!);
      if (piece !== "" && !piece.includes(PARTIAL)) {
        at += piece.length;
        ends.push(at);
        t++;
        continue;
      }
      const within = this.cutCharacters(tokenIds, t);
      for (const end of within) ends.push(at + end);
      at += within.at(-1)!;
      t += within.length;
    }
    return at === text.length ? ends : null;
  }

  private read(id: number): string {
    let text = this.known.get(id);
    if (text === undefined) {
      text = this.detokenize(Int32Array.of(id));
      this.known.set(id, text);
    }
    return text;
  }

  /** Finds the ends of the tokens from `start` to the next token that ends a character. */
  private cutCharacters(tokenIds: Int32Array, start: number): number[] {
    let end = start + 1;
    // A token without text may stand in the middle of a character.
    const goesOn = (id: number) => this.read(id) === "" || this.read(id).includes(PARTIAL);
    const prefixes: string[] = [];
    for (; ; end++) {
      const text = this.detokenize(tokenIds.subarray(start, end));
      prefixes.push(text);
      if (text !== "" && !text.endsWith(PARTIAL)) break;
      if (end === tokenIds.length || !goesOn(tokenIds[end]!)) break;
      if (prefixes.length === LONGEST) return this.cutBytes(tokenIds, start, goesOn);
    }
    const whole = prefixes.at(-1)!;
    let last = 0;
    return prefixes.map((prefix, i) => {
      last = Math.max(last, i === prefixes.length - 1 ? whole.length : countCommon(prefix, whole));
      return last;
    });
  }

  /** Handles invalid bytes: the whole text belongs to the last token. */
  private cutBytes(tokenIds: Int32Array, start: number, goesOn: (id: number) => boolean): number[] {
    let end = start;
    while (end < tokenIds.length && goesOn(tokenIds[end]!)) end++;
    const { length } = this.detokenize(tokenIds.subarray(start, end));
    return Array.from({ length: end - start }, (_, i) => (i === end - start - 1 ? length : 0));
  }
}

function countCommon(a: string, b: string): number {
  let count = 0;
  while (count < a.length && count < b.length && a[count] === b[count]) count++;
  return count;
}
