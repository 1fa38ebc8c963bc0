import type { PieceTokenizer } from "./piece-tokenizer.js";
import { ownText } from "./rendered-text.js";
import type { TextTokenizer } from "./text-tokenizer.js";

/** How the template ends an assistant's turn that others follow. */
export interface TurnEnd {
  /** From the assistant's last word through the end-of-turn text. */
  closing: string;
  endText: string;
}

/** The texts that end turns. */
export class TurnEnds {
  private endTexts: string[] | undefined;
  /** By shape of the base conversation. */
  private readonly ends = new Map<string, TurnEnd>();

  /** @param tokens of the model, which end a turn. */
  constructor(
    private readonly tokenizer: TextTokenizer,
    private readonly pieces: PieceTokenizer,
    private readonly tokens: readonly number[],
  ) {}

  /** Texts of the tokens that end a turn. */
  listTexts(): readonly string[] {
    this.endTexts ??= this.tokens.map((id) => this.tokenizer.detokenize([id])).filter((text) => text !== "");
    return this.endTexts;
  }

  /** The same, and those that the template prints in their place once the conversation goes on, as far as it was seen. */
  listPrintedTexts(): string[] {
    const printed = Array.from(this.ends.values(), ({ endText }) => endText);
    return [...new Set([...this.listTexts(), ...printed])].filter((text) => text !== "");
  }

  /** How the turn ends before this text, which follows the assistant's last word. */
  find(shape: string, text: string, renderTransition: () => string): TurnEnd {
    let end = this.ends.get(shape);
    if (!end || !text.startsWith(end.closing)) {
      end = this.findIn(renderTransition());
      this.ends.set(shape, end);
    }
    return end;
  }

  /**
   * How a turn ends in the text between the assistant's last word and a next message's first. With none of the model's
   * own end-of-turn tokens there, the first special token counts: gpt-oss samples `<|return|>`, and its template
   * prints `<|end|>` in that place once the conversation goes on.
   */
  private findIn(transition: string): TurnEnd {
    let endTexts = this.listTexts().filter((text) => transition.includes(text));
    if (endTexts.length === 0) {
      const special = this.pieces.tokenizePieces(ownText(transition)).find((piece) => piece.control);
      endTexts = special ? [this.pieces.specialTokens.textOf(special.ids[0]!)!] : [];
    }
    const [first] = endTexts.map((text) => ({ at: transition.indexOf(text), text })).sort((a, b) => a.at - b.at);
    if (!first) return { closing: "", endText: "" };
    return { closing: transition.slice(0, first.at + first.text.length), endText: first.text };
  }
}
