import type { ImageRecord } from "@cria/core";
import type { DeltaTokenizer } from "./delta-tokenizer.js";
import { markOf, showImages } from "./image-marks.js";
import { cutAtImages, type RenderedText } from "./rendered-text.js";

/**
 * Token sequences of a conversation in which each image is one negative token, the same for the same file, so that
 * sequences with images are compared and converted to text like any others.
 */
export class FoldedImages {
  /** -1 is the first of them, and so on. */
  private readonly images: ImageRecord[] = [];
  /** Images by the first of their tokens. */
  private readonly known = new Map<number, { ids: Int32Array; folded: number }[]>();

  /** @param whole the rendering with the images. */
  constructor(
    private readonly tokenizer: Pick<DeltaTokenizer, "tokenize" | "tokenizer">,
    whole: RenderedText,
  ) {
    for (const stretch of cutAtImages(whole)) {
      const image = stretch.images[0]?.image;
      if (!image) continue;
      this.images.push(image);
      const ids = tokenizer.tokenize(stretch);
      const others = this.known.get(ids[0]!) ?? [];
      this.known.set(ids[0]!, [...others, { ids, folded: -this.images.length }]);
    }
  }

  /**
   * @param mask as long as `tokenIds`.
   * @returns a mask that is 1 on an image if any of its tokens has 1.
   */
  fold(tokenIds: ArrayLike<number>, mask?: ArrayLike<number>): { ids: Int32Array; mask: Uint8Array | undefined } {
    if (this.images.length === 0) return { ids: Int32Array.from(tokenIds), mask: mask && Uint8Array.from(mask) };
    const ids: number[] = [];
    const folded: (0 | 1)[] = [];
    for (let i = 0; i < tokenIds.length; ) {
      const image = this.known.get(tokenIds[i]!)?.find((other) => startsWith(tokenIds, i, other.ids));
      const length = image?.ids.length ?? 1;
      ids.push(image?.folded ?? tokenIds[i]!);
      if (mask) folded.push(Array.prototype.slice.call(mask, i, i + length).some(Boolean) ? 1 : 0);
      i += length;
    }
    return { ids: Int32Array.from(ids), mask: mask && Uint8Array.from(folded) };
  }

  /** Folded tokens of a text. */
  tokenize(rendered: RenderedText): Int32Array {
    return this.fold(this.tokenizer.tokenize(rendered)).ids;
  }

  /** The text of folded tokens, with the marks of images. */
  detokenize(ids: ArrayLike<number>): string {
    let text = "";
    let run: number[] = [];
    const flush = () => {
      if (run.length > 0) text += this.tokenizer.tokenizer.detokenize(run);
      run = [];
    };
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]!;
      if (id >= 0) {
        run.push(id);
        continue;
      }
      flush();
      text += markOf(this.images[-id - 1]!);
    }
    flush();
    return text;
  }

  /** The same for people, with a placeholder for each image. */
  show(ids: ArrayLike<number>): string {
    return showImages(this.detokenize(ids), this.images);
  }
}

function startsWith(ids: ArrayLike<number>, at: number, part: Int32Array): boolean {
  for (let i = 0; i < part.length; i++) if (ids[at + i] !== part[i]) return false;
  return true;
}
