import type { ChatMessage, ToolSchema } from "@cria/core";
import type { DeltaTokenizer } from "./delta-tokenizer.js";

/** What an engine must do before the next turn, when each turn is rendered as in production. */
export interface EncodedTurn {
  /** How many tokens of the last context stay as they are; the engine's KV is valid up to here. */
  keep: number;
  /** What follows them: to be evaluated before sampling, mask 0. */
  tokenIds: Int32Array;
  /** The whole context: the kept tokens and `tokenIds`. */
  contextIds: Int32Array;
  /** 1 where a token of the context is one that the policy sampled. */
  contextMask: Uint8Array;
  /** Sampled tokens that are no longer in the context as they were sampled; 0 while history stands. */
  droppedSampled: number;
}

/** A stretch of the context with its text. */
interface Piece {
  ids: Int32Array;
  text: string;
  sampled: boolean;
}

/**
 * A conversation that is rendered whole before each turn, as a server would do it (`use_inference_chat_template`):
 * what the template rewrites in earlier turns (reasoning that it drops) is then gone for the model too.
 * Only what changed is tokenized and has to be evaluated again, and sampled tokens stay as they were sampled wherever
 * the template still prints their text. One object for each conversation.
 */
export class InferenceConversation {
  private pieces: Piece[] = [];

  constructor(
    private readonly tokenizer: DeltaTokenizer,
    private readonly tools: readonly ToolSchema[] = [],
  ) {}

  /** The tokens that the engine holds, as far as this object was told. */
  get contextIds(): Int32Array {
    return concatenate(this.pieces);
  }

  /** Appends what the policy sampled after the last `encodeTurn`. */
  addSampled(tokenIds: ArrayLike<number>): void {
    if (tokenIds.length === 0) return;
    const ids = Int32Array.from(tokenIds);
    this.pieces.push({ ids, text: this.tokenizer.tokenizer.detokenize(ids), sampled: true });
  }

  /**
   * Renders the conversation so far with the generation prompt and says which tokens stay.
   * @param messages all of them; assistant messages as production would keep them.
   * @throws TokenizerError when the template refuses the conversation.
   */
  encodeTurn(messages: readonly ChatMessage[]): EncodedTurn {
    const whole = this.tokenizer.render(messages, this.tools, true);
    const { kept, ids } = this.match(whole);
    const dropped = this.pieces.slice(kept.length).filter((piece) => piece.sampled);
    const text = whole.slice(kept.reduce((sum, piece) => sum + piece.text.length, 0));
    this.pieces = [...kept, ...this.split(ids, text)];
    return {
      keep: kept.reduce((sum, piece) => sum + piece.ids.length, 0),
      tokenIds: ids,
      contextIds: this.contextIds,
      contextMask: Uint8Array.from(this.pieces.flatMap((piece) => Array(piece.ids.length).fill(piece.sampled ? 1 : 0))),
      droppedSampled: dropped.reduce((sum, piece) => sum + piece.ids.length, 0),
    };
  }

  /**
   * The longest run of pieces that the rendering still begins with and that the rest can be joined to without a seam
   * that no tokenizer would make.
   */
  private match(whole: string): { kept: Piece[]; ids: Int32Array } {
    const { tokenizer } = this.tokenizer;
    let count = 0;
    let at = 0;
    while (count < this.pieces.length && whole.startsWith(this.pieces[count]!.text, at)) {
      at += this.pieces[count]!.text.length;
      count++;
    }
    for (; count > 0; count--) {
      const rest = whole.slice(at);
      const ids = tokenizer.tokenize(rest);
      const kept = this.pieces.slice(0, count);
      if (this.joins(kept, ids, rest)) return { kept, ids };
      at -= this.pieces[count - 1]!.text.length;
    }
    return { kept: [], ids: this.tokenizer.addBos(tokenizer.tokenize(whole)) };
  }

  /**
   * Whether a special token stands on one side of the join (text beside it is tokenized apart), or else the last piece
   * and the rest have the same tokens together as one by one.
   */
  private joins(kept: readonly Piece[], ids: Int32Array, rest: string): boolean {
    const { specialTokens, tokenizer } = this.tokenizer;
    const isSpecial = (id: number | undefined) => id !== undefined && specialTokens.textOf(id) !== null;
    const last = kept.at(-1)!;
    if (rest === "" || isSpecial(ids[0]) || isSpecial(last.ids.at(-1))) return true;
    if (last.sampled || (kept.length > 1 && !isSpecial(kept.at(-2)!.ids.at(-1)))) return false;
    const together = tokenizer.tokenize(last.text + rest);
    const apart = concatenate([last, { ids, text: rest, sampled: false }]);
    return together.length === apart.length && together.every((id, i) => id === apart[i]);
  }

  /** Rendered text cut after each special token, so that later turns can keep as much of it as stays the same. */
  private split(ids: Int32Array, text: string): Piece[] {
    const pieces: Piece[] = [];
    let from = 0;
    let at = 0;
    for (const [i, id] of ids.entries()) {
      const special = this.tokenizer.specialTokens.textOf(id);
      if (special === null) continue;
      // A BOS token that the template does not print has no text here.
      const unprinted = i === 0 && !text.startsWith(special);
      const end = unprinted ? 0 : text.indexOf(special, at) + special.length;
      pieces.push({ ids: ids.slice(from, i + 1), text: text.slice(at, end), sampled: false });
      from = i + 1;
      at = end;
    }
    if (from < ids.length) pieces.push({ ids: ids.slice(from), text: text.slice(at), sampled: false });
    return pieces;
  }
}

function concatenate(pieces: readonly Piece[]): Int32Array {
  const all = new Int32Array(pieces.reduce((sum, piece) => sum + piece.ids.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece.ids, at);
    at += piece.ids.length;
  }
  return all;
}
