import type { PolicySequence } from "@cria/core";

interface Checkpoint {
  sequence: PolicySequence;
  /** Tokens that it holds, and the characters that they spell. */
  tokens: number;
  characters: number;
}

/** What to evaluate next, and from where. */
export interface NextInput {
  sequence: PolicySequence;
  /** Tokens of the trajectory that stay. */
  keep: number;
  delta: Int32Array;
}

export interface ProductionViewOptions {
  createSequence: () => PolicySequence;
  tokenize: (text: string) => Int32Array;
  detokenize: (ids: ArrayLike<number>) => string;
}

/**
 * A conversation as production renders it: templates that drop the reasoning of earlier turns change what was already
 * evaluated. A fork of the sequence is kept where each turn begins; when the rendering changes, evaluation goes on from
 * a fork of the last one before the first changed character. Texts are compared, not tokens: sampled text that the
 * tokenizer would have cut otherwise is no change.
 */
export class ProductionView {
  private readonly checkpoints: Checkpoint[] = [];
  private readonly owned = new Set<PolicySequence>();

  constructor(private readonly options: ProductionViewOptions) {}

  /** Remembers the sequence as it is: evaluated up to where an assistant begins to speak. */
  remember(sequence: PolicySequence, tokenIds: readonly number[]): void {
    const fork = this.own(sequence.fork());
    this.checkpoints.push({
      sequence: fork,
      tokens: tokenIds.length,
      characters: this.options.detokenize(tokenIds).length,
    });
  }

  /**
   * @param sequence holds `tokenIds`.
   * @param rendered the whole conversation with the next generation prompt, as the template prints it now.
   */
  advance(sequence: PolicySequence, tokenIds: readonly number[], rendered: string): NextInput {
    const { tokenize, detokenize } = this.options;
    const spelled = detokenize(tokenIds);
    const same = countCommon(spelled, rendered);
    if (same === spelled.length) {
      return { sequence, keep: tokenIds.length, delta: tokenize(rendered.slice(same)) };
    }
    while (this.checkpoints.length > 0 && this.checkpoints.at(-1)!.characters > same) {
      this.disown(this.checkpoints.pop()!.sequence);
    }
    this.disown(sequence);
    const checkpoint = this.checkpoints.at(-1);
    // Not even the prompt stayed: templates that print tools before the last user message move them.
    if (!checkpoint) return { sequence: this.own(this.options.createSequence()), keep: 0, delta: tokenize(rendered) };
    return {
      sequence: this.own(checkpoint.sequence.fork()),
      keep: checkpoint.tokens,
      delta: tokenize(rendered.slice(checkpoint.characters)),
    };
  }

  dispose(): void {
    for (const sequence of this.owned) sequence.dispose();
    this.owned.clear();
  }

  private own(sequence: PolicySequence): PolicySequence {
    this.owned.add(sequence);
    return sequence;
  }

  private disown(sequence: PolicySequence): void {
    if (this.owned.delete(sequence)) sequence.dispose();
  }
}

function countCommon(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let i = 0;
  while (i < most && a[i] === b[i]) i++;
  return i;
}
