import type { RunEvent } from "cria";
import type { Point } from "../curve.js";

export interface RecordOptions {
  /** Sampled tokens until the second point, and least tokens between two. */
  every: number;
  /** Sampled tokens after which the run may end. */
  tokens: number;
  /** Tokens that the policy's engine has sampled since it was opened; left out: a step's metric alone is read. */
  countDecoded?(): number;
}

/** Tokens of a point over those of the one before, at least: a method is told from another by a factor of tokens. */
const GROWTH = 1.25;

/** Collects from a training's events what it learned, and says when to validate and when to end. */
export class LearningRecord {
  readonly points: Point[] = [];
  private tokens = 0;
  private decoded: number;

  constructor(private readonly options: RecordOptions) {
    this.decoded = this.countDecoded();
  }

  readonly report = (event: RunEvent): void => {
    if (event.type === "step") {
      // The metric lacks conversations that a filter of groups left out; the engine lacks turns of a teacher.
      const sampled = this.countDecoded() - this.decoded;
      this.tokens += Math.max(sampled, event.metrics["engine/decode_tokens"]!);
    } else if (event.type === "validated") this.points.push({ tokens: this.tokens, success: event.success ?? 0 });
    else return;
    // A validation's own tokens are nobody's cost.
    this.decoded = this.countDecoded();
  };

  /** True if the tokens since the last point are enough for another one. */
  get isPointDue(): boolean {
    const last = this.points.at(-1)?.tokens ?? 0;
    return this.tokens >= Math.max(last + this.options.every, GROWTH * last);
  }

  /** True if a point lies behind the last token that counts. */
  get isOver(): boolean {
    return (this.points.at(-1)?.tokens ?? 0) >= this.options.tokens;
  }

  private countDecoded(): number {
    return this.options.countDecoded?.() ?? 0;
  }
}
