/** Pieces that are passed on at once, because a user waits for the first words. */
const UNPACED = 2;

interface Piece {
  kind: string;
  text: string;
  tell: (text: string) => void;
}

/**
 * Joins pieces of text that arrive within some milliseconds. One event for each would cost as much processor time as a
 * small model's token takes, and a reader cannot see the order of two words within one frame of a screen.
 */
export class TextPace {
  private pieces: Piece[] = [];
  private told = 0;
  private timer: NodeJS.Timeout | undefined;

  /** @param milliseconds between events; 0 passes each piece on as it arrives. */
  constructor(private readonly milliseconds: number) {}

  /**
   * @param kind only pieces of the same kind are joined.
   * @param tell gets the piece and the text that was joined to it.
   */
  add(kind: string, text: string, tell: (text: string) => void): void {
    const last = this.pieces.at(-1);
    if (last?.kind === kind) last.text += text;
    else this.pieces.push({ kind, text, tell });
    if (this.milliseconds === 0 || this.told < UNPACED) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), this.milliseconds);
  }

  /** Passes the kept pieces on. */
  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    for (const { text, tell } of this.pieces.splice(0)) {
      this.told++;
      tell(text);
    }
  }
}
