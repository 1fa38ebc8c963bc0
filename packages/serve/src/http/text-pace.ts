/** Pieces that go on at once: what comes first is what people wait for. */
const UNPACED = 2;

interface Piece {
  kind: string;
  text: string;
  tell: (text: string) => void;
}

/**
 * Joins pieces of text that come within some milliseconds: an event of its own for each costs as much time of a processor as a small
 * model's token takes, and nobody sees which of two words came first within a screen's frame.
 */
export class TextPace {
  private pieces: Piece[] = [];
  private told = 0;
  private timer: NodeJS.Timeout | undefined;

  /** @param milliseconds between pieces that go on; 0: each goes on as it comes. */
  constructor(private readonly milliseconds: number) {}

  /** @param kind what is joined has one; @param tell takes the piece, and what was joined to it. */
  add(kind: string, text: string, tell: (text: string) => void): void {
    const last = this.pieces.at(-1);
    if (last?.kind === kind) last.text += text;
    else this.pieces.push({ kind, text, tell });
    if (this.milliseconds === 0 || this.told < UNPACED) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), this.milliseconds);
  }

  /** Passes on what there is. */
  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    for (const { text, tell } of this.pieces.splice(0)) {
      this.told++;
      tell(text);
    }
  }
}
