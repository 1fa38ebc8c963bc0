/** What stands in a text for bytes that are no character: a token may end within one. */
const PARTIAL = "\uFFFD";
/** Tokens in a row without an end of a character between them that are looked at one by one: characters have four bytes at most. */
const LONGEST = 64;

/** Texts of tokens, each asked for once. */
export class TokenTexts {
  private readonly known = new Map<number, string>();

  constructor(private readonly detokenize: (tokenIds: Int32Array) => string) {}

  /**
   * Where the text of each token ends in the text of all of them, in UTF-16 units. A character that several tokens make up is the
   * last one's, as are bytes that are no characters.
   * @returns null where the text is more than the texts of its tokens, as no vocabulary of llama.cpp has it.
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

  /** Ends within the tokens from `start` to the next one at which a character ends. */
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

  /** Of bytes that are no text: all of it is the last token's. */
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
