import type { ChatMessage, ToolSchema } from "@cria/core";
import type { DeltaTokenizer, OnUnsplit } from "./delta-tokenizer.js";
import { joinIds, type TokenizedPiece } from "./piece-tokenizer.js";
import { joinRendered, ownText, type RenderedText, sliceRendered } from "./rendered-text.js";

/** The engine's work before the next turn, when each turn is rendered as in production. */
export interface EncodedTurn {
  /** Number of unchanged leading tokens of the last context; the engine's KV is valid up to here. */
  keep: number;
  /** The tokens after them, to evaluate before sampling; mask 0. */
  tokenIds: Int32Array;
  /** The whole context: the kept tokens and `tokenIds`. */
  contextIds: Int32Array;
  /** 1 for tokens of the context that the policy sampled. */
  contextMask: Uint8Array;
  /** Number of sampled tokens that are no longer in the context in their sampled form; 0 while history is unchanged. */
  droppedSampled: number;
}

/** A part of the context with its text. */
interface Piece extends RenderedText {
  ids: Int32Array;
  sampled: boolean;
}

/**
 * A conversation that is rendered whole before each turn, as a server does (`use_inference_chat_template`). When the
 * template rewrites earlier turns (drops their reasoning), the model sees the rewritten text too.
 * Only changed parts are tokenized and need evaluation, and sampled tokens stay unchanged where the template still
 * prints their text. Use one object for each conversation.
 */
export class InferenceConversation {
  private pieces: Piece[] = [];

  constructor(
    private readonly tokenizer: DeltaTokenizer,
    private readonly tools: readonly ToolSchema[] = [],
    private readonly onUnsplit?: OnUnsplit,
  ) {}

  /** The tokens that the engine holds, according to the calls so far. */
  get contextIds(): Int32Array {
    return joinIds(this.pieces);
  }

  /** Appends the tokens that the policy sampled after the last `encodeTurn`. */
  addSampled(tokenIds: ArrayLike<number>): void {
    if (tokenIds.length === 0) return;
    const ids = Int32Array.from(tokenIds);
    this.pieces.push({ ...ownText(this.tokenizer.tokenizer.detokenize(ids)), ids, sampled: true });
  }

  /**
   * Renders the conversation so far with the generation prompt and determines which tokens stay.
   * @param messages all of them; assistant messages in the form that production keeps.
   * @throws TokenizerError when the template refuses the conversation.
   */
  encodeTurn(messages: readonly ChatMessage[]): EncodedTurn {
    const whole = this.tokenizer.renderMarked(messages, this.tools, true, this.onUnsplit);
    const { kept, added } = this.match(whole);
    const dropped = this.pieces.slice(kept.length).filter((piece) => piece.sampled);
    this.pieces = [...kept, ...joinUpToControl(added)];
    return {
      keep: kept.reduce((sum, piece) => sum + piece.ids.length, 0),
      tokenIds: joinIds(added),
      contextIds: this.contextIds,
      contextMask: Uint8Array.from(this.pieces.flatMap((piece) => Array(piece.ids.length).fill(piece.sampled ? 1 : 0))),
      droppedSampled: dropped.reduce((sum, piece) => sum + piece.ids.length, 0),
    };
  }

  /**
   * The longest run of pieces that the rendering still begins with, and that joins the rest with the tokens that the
   * tokenizer would choose.
   */
  private match(whole: RenderedText): { kept: Piece[]; added: TokenizedPiece[] } {
    const { tokenizer } = this;
    let count = 0;
    let at = 0;
    while (count < this.pieces.length && continues(whole, at, this.pieces[count]!)) {
      at += this.pieces[count]!.text.length;
      count++;
    }
    for (; count > 0; count--) {
      const kept = this.pieces.slice(0, count);
      const added = tokenizer.tokenizePieces(sliceRendered(whole, at));
      if (this.joins(kept, added, whole, at)) return { kept, added };
      at -= this.pieces[count - 1]!.text.length;
    }
    const added = tokenizer.tokenizePieces(whole);
    const bos = tokenizer.bosToken;
    if (bos === null || added[0]?.ids[0] === bos) return { kept: [], added };
    // A BOS token that the template does not print has no text here.
    return { kept: [], added: [{ ...ownText(""), ids: Int32Array.of(bos), control: true }, ...added] };
  }

  /**
   * True if one side of the join is a control token or an image (text next to it is tokenized separately), or else
   * if the last piece and the rest have the same tokens when they are tokenized together.
   */
  private joins(kept: readonly Piece[], added: readonly TokenizedPiece[], whole: RenderedText, at: number): boolean {
    const last = kept.at(-1)!;
    if (added.length === 0 || divides(added[0]!) || this.endsApart(last)) return true;
    if (last.sampled || (kept.length > 1 && !this.endsApart(kept.at(-2)!))) return false;
    const together = this.tokenizer.tokenize(sliceRendered(whole, at - last.text.length));
    const apart = joinIds([last, ...added]);
    return together.length === apart.length && together.every((id, i) => id === apart[i]);
  }

  /** True if a piece ends with a control token or an image. */
  private endsApart(piece: Piece): boolean {
    if (piece.images.at(-1)?.to === piece.text.length) return true;
    const last = piece.ids.at(-1);
    return last !== undefined && this.tokenizer.specialTokens.textOf(last) !== null;
  }
}

function divides(piece: TokenizedPiece): boolean {
  return piece.control || piece.images.length > 0;
}

/**
 * True if a rendering continues with this piece at this place, with the same text of others and the same images in
 * it.
 */
function continues(whole: RenderedText, at: number, piece: Piece): boolean {
  if (!whole.text.startsWith(piece.text, at)) return false;
  const { plainAt } = sliceRendered(whole, at, at + piece.text.length);
  return plainAt.length === piece.plainAt.length && plainAt.every((place, i) => place === piece.plainAt[i]);
}

/** Joins pieces up to each control token or image, so that later turns can keep as much of them as stays the same. */
function joinUpToControl(pieces: readonly TokenizedPiece[]): Piece[] {
  const joined: Piece[] = [];
  let open: TokenizedPiece[] = [];
  for (const [i, piece] of pieces.entries()) {
    open.push(piece);
    if (!divides(piece) && i + 1 < pieces.length) continue;
    joined.push({ ...joinRendered(open), ids: joinIds(open), sampled: false });
    open = [];
  }
  return joined;
}
