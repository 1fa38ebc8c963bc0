import type { SpecialToken } from "@cria/core";

interface Node {
  token: SpecialToken | null;
  /** True if the text of a control token continues from here. */
  leadsToControl: boolean;
  readonly next: Map<number, Node>;
}

/** The special tokens of a vocabulary, and searches for them in texts. All searches take time linear in the text. */
export class SpecialTokens {
  private readonly root: Node = makeNode();
  private readonly controlTexts = new Map<number, string>();
  /** Index of each token in llama.cpp's order: longest first, in UTF-8 bytes. */
  private readonly ranks = new Map<SpecialToken, number>();

  constructor(tokens: readonly SpecialToken[]) {
    const sizes = new Map(tokens.map((token) => [token, countBytes(token)]));
    const ordered = tokens.filter(({ text }) => text !== "").sort((a, b) => sizes.get(b)! - sizes.get(a)!);
    for (const [rank, token] of ordered.entries()) {
      this.ranks.set(token, rank);
      if (token.control) this.controlTexts.set(token.id, token.text);
      let node = this.root;
      for (let i = 0; i < token.text.length; i++) {
        const code = token.text.charCodeAt(i);
        node.leadsToControl ||= token.control;
        let next = node.next.get(code);
        if (!next) {
          next = makeNode();
          node.next.set(code, next);
        }
        node = next;
      }
      node.token = token;
    }
  }

  /** The text of a control token, null for any other token. */
  textOf(id: number): string | null {
    return this.controlTexts.get(id) ?? null;
  }

  /** The special tokens that occur in a text, in llama.cpp's order. */
  listSpelled(text: string): SpecialToken[] {
    const spelled = new Set<SpecialToken>();
    this.scan(text, (token) => {
      if (token) spelled.add(token);
    });
    return [...spelled].sort((a, b) => this.ranks.get(a)! - this.ranks.get(b)!);
  }

  /**
   * Places inside each control token in a text, including one that begins at its end: after the first character, or
   * before it for a token of one character. Ascending.
   */
  listControlPlaces(text: string): number[] {
    const places = new Set<number>();
    this.scan(text, (token, at) => {
      if (token === null || token.control) places.add(token?.text.length === 1 ? at : at + 1);
    });
    return [...places].sort((a, b) => a - b);
  }

  /** Calls `found` with each token and its place, and with null if the text ends within one. */
  private scan(text: string, found: (token: SpecialToken | null, at: number) => void): void {
    for (let at = 0; at < text.length; at++) {
      let node = this.root.next.get(text.charCodeAt(at));
      for (let end = at + 1; node; end++) {
        if (node.token) found(node.token, at);
        if (end === text.length) {
          if (node.leadsToControl) found(null, at);
          break;
        }
        node = node.next.get(text.charCodeAt(end));
      }
    }
  }
}

/** Length of a token's text in UTF-8. */
export function countBytes(token: SpecialToken): number {
  return Buffer.byteLength(token.text);
}

function makeNode(): Node {
  return { token: null, leadsToControl: false, next: new Map() };
}
