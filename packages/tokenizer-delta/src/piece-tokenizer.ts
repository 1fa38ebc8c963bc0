import type { ImageEncoder, ImageRecord } from "@cria/core";
import { isLoaded } from "@cria/core/internal";
import { type Cut, cutAtSpecialTokens } from "./cut-at-special-tokens.js";
import { notLoaded } from "./image-marks.js";
import { RecentResults } from "./recent-results.js";
import { cutAtImages, ownText, type RenderedText, sliceRendered } from "./rendered-text.js";
import { SpecialTokens } from "./special-tokens.js";
import type { TextTokenizer } from "./text-tokenizer.js";

/** Texts of at least this many characters are tokenized off the event loop: a shorter one takes a few milliseconds. */
const LONG_TEXT = 8192;
/** Milliseconds before other work gets a turn. */
const LONGEST_STRETCH_MS = 4;

/** Places images; every engine with a projector implements it. */
export type ImagePlacer = Pick<ImageEncoder, "place" | "countTokens">;

/** Texts whose tokens are remembered: their number, and the longest one's UTF-16 units. */
const REMEMBERED = 4096;
const LONGEST_REMEMBERED = 256;

/** A part of a text with its tokens: an image, a control token, or text between them. */
export interface TokenizedPiece extends RenderedText {
  /** Not to be changed: pieces of equal text share them. */
  ids: Int32Array;
  /** True for a control token. */
  control: boolean;
}

/**
 * Tokenizes text with special tokens, in linear time and with exactly llama.cpp's tokens, except that control tokens
 * spelled by others stay plain text, tokenized together with the text around them. Images get the tokens that the
 * engine places; text next to them is tokenized separately, as in llama.cpp's mtmd.
 */
export class PieceTokenizer {
  readonly specialTokens: SpecialTokens;
  /** Tokens of texts between special tokens; nobody changes them. */
  private readonly recent = new RecentResults<Int32Array>(REMEMBERED, LONGEST_REMEMBERED);

  /** @param images may be absent if no text contains images. */
  constructor(
    private readonly tokenizer: TextTokenizer,
    private readonly images?: ImagePlacer,
  ) {
    this.specialTokens = new SpecialTokens(tokenizer.listSpecialTokens());
  }

  /** @throws TokenizerError for an image that is not in memory, EngineError for one too large for the projector. */
  tokenize(rendered: RenderedText): Int32Array {
    return joinIds(this.tokenizePieces(rendered));
  }

  /** The same, without blocking the event loop for more than some milliseconds, however long the text is. */
  async tokenizeAside(rendered: RenderedText): Promise<Int32Array> {
    if (rendered.text.length <= LONG_TEXT) return this.tokenize(rendered);
    // Rendering took time, and so does searching for special tokens.
    await new Promise((resolve) => setImmediate(resolve));
    const pieces: { ids: Int32Array }[] = [];
    for (const stretch of cutAtImages(rendered)) {
      const [image] = stretch.images;
      pieces.push({ ids: image ? this.place(image.image) : await this.tokenizeTextAside(stretch) });
    }
    return joinIds(pieces);
  }

  private async tokenizeTextAside(rendered: RenderedText): Promise<Int32Array> {
    const { text, plainAt } = rendered;
    const { cuts, certain } = cutAtSpecialTokens(rendered, this.specialTokens.listSpelled(text));
    if (!certain && plainAt.length === 0) return this.tokenizeLong(text, true);
    const pieces: { ids: Int32Array }[] = [];
    let lastYield = performance.now();
    for (const { from, to, token } of cuts) {
      if (token) pieces.push({ ids: Int32Array.of(token.id) });
      else {
        const part = text.slice(from, to);
        const ids =
          part.length > LONG_TEXT
            ? await this.tokenizeLong(part, false)
            : this.tokenizer.tokenize(part, { special: false });
        pieces.push({ ids });
      }
      if (performance.now() - lastYield < LONGEST_STRETCH_MS) continue;
      await new Promise((resolve) => setImmediate(resolve));
      lastYield = performance.now();
    }
    return joinIds(pieces);
  }

  private async tokenizeLong(text: string, special: boolean): Promise<Int32Array> {
    return this.tokenizer.tokenizeAside
      ? this.tokenizer.tokenizeAside(text, { special })
      : this.tokenizer.tokenize(text, { special });
  }

  /**
   * Tokens of a text without control tokens, whatever it spells: llama.cpp's tokens without `special`, in linear time.
   */
  tokenizePlain(text: string): Int32Array {
    const words = this.specialTokens.listSpelled(text).filter((token) => !token.control);
    const { cuts, certain } = cutAtSpecialTokens(ownText(text), words);
    if (!certain) return this.tokenizer.tokenize(text, { special: false });
    return joinIds(this.tokenizeCuts(ownText(text), cuts));
  }

  /** The tokens, cut at images and special tokens; the pieces' texts together are the whole text. */
  tokenizePieces(rendered: RenderedText): TokenizedPiece[] {
    return this.cutPieces(rendered, (image) => this.place(image));
  }

  /** As many tokens as `tokenize` returns, with -1 for those of images, which are not placed. */
  tokenizeUnplaced(rendered: RenderedText): Int32Array {
    return joinIds(this.cutPieces(rendered, (image) => new Int32Array(this.images!.countTokens(image)).fill(-1)));
  }

  private cutPieces(rendered: RenderedText, idsOf: (image: ImageRecord) => Int32Array): TokenizedPiece[] {
    return cutAtImages(rendered).flatMap((stretch) => {
      const [image] = stretch.images;
      return image ? [{ ...stretch, ids: idsOf(image.image), control: false }] : this.tokenizeText(stretch);
    });
  }

  private place(image: ImageRecord): Int32Array {
    if (!isLoaded(image)) throw notLoaded(`the record of ${image.hash}, without its file`);
    return this.images!.place(image).tokenIds;
  }

  private tokenizeText(rendered: RenderedText): TokenizedPiece[] {
    const { text, plainAt } = rendered;
    const { cuts, certain } = cutAtSpecialTokens(rendered, this.specialTokens.listSpelled(text));
    if (!certain && plainAt.length === 0) {
      return [{ ...rendered, ids: this.tokenizer.tokenize(text), control: false }];
    }
    return this.tokenizeCuts(rendered, cuts);
  }

  private tokenizeCuts(rendered: RenderedText, cuts: readonly Cut[]): TokenizedPiece[] {
    return cuts.map(({ from, to, token }) => {
      const piece = sliceRendered(rendered, from, to);
      if (token) return { ...piece, ids: Int32Array.of(token.id), control: token.control };
      const ids = this.recent.get(piece.text, () => this.tokenizer.tokenize(piece.text, { special: false }));
      return { ...piece, ids, control: false };
    });
  }
}

export function joinIds(pieces: readonly { ids: Int32Array }[]): Int32Array {
  const all = new Int32Array(pieces.reduce((sum, piece) => sum + piece.ids.length, 0));
  let at = 0;
  for (const { ids } of pieces) {
    all.set(ids, at);
    at += ids.length;
  }
  return all;
}
