import type { PieceTokenizer } from "./piece-tokenizer.js";
import { ownText } from "./rendered-text.js";
import type { TextTokenizer } from "./text-tokenizer.js";

/** The template's end of an assistant's turn that others follow. */
export interface TurnEnd {
  /** Text from the assistant's last word to the end of the end-of-turn text. */
  closing: string;
  endText: string;
}

/** The texts that end turns. */
export class TurnEnds {
  private endTexts: string[] | undefined;
  /** Ends by the base conversation's shape. */
  private readonly ends = new Map<string, TurnEnd>();

  /** @param tokens the model's tokens that end a turn. */
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

  /** The same, and texts that the template has been seen to print instead of them once the conversation continues. */
  listPrintedTexts(): string[] {
    const printed = Array.from(this.ends.values(), ({ endText }) => endText);
    return [...new Set([...this.listTexts(), ...printed])].filter((text) => text !== "");
  }

  /** The end of the turn before this text, which follows the assistant's last word. */
  find(shape: string, text: string, renderTransition: () => string): TurnEnd {
    let end = this.ends.get(shape);
    if (!end || !text.startsWith(end.closing)) {
      end = this.findIn(renderTransition());
      this.ends.set(shape, end);
    }
    return end;
  }

  /**
   * The end of a turn in the text between the assistant's last word and a next message's first. If that has none of the
   * model's own end-of-turn tokens, the first special token counts: gpt-oss samples `<|return|>`, and its template
   * prints `<|end|>` instead once the conversation continues.
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
