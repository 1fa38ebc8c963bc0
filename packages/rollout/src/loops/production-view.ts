import type { ChatMessage, PolicySequence } from "@cria/core";
import type { InferenceConversation } from "@cria/tokenizer-delta";

interface Checkpoint {
  sequence: PolicySequence;
  /** Number of tokens in the sequence. */
  tokens: number;
}

/** The next tokens to evaluate, and their position. */
export interface NextInput {
  /** Number of the trajectory's tokens that stay unchanged. */
  keep: number;
  /** The tokens that follow them in the trajectory, with mask 0. */
  observed: Int32Array;
  /** The kept and observed tokens that the sequence has not evaluated yet. */
  delta: Int32Array;
}

/**
 * A conversation as production renders it. Templates that drop the reasoning of earlier turns change tokens that
 * were already evaluated. A fork of the sequence is therefore kept at the beginning of each turn; when the rendering
 * changes, evaluation continues in a fork of the last one before the change.
 */
export class ProductionView {
  private readonly checkpoints: Checkpoint[] = [];
  private readonly owned = new Set<PolicySequence>();

  /** @param conversation has encoded the prompt that the engine holds. */
  constructor(
    private readonly conversation: InferenceConversation,
    private readonly createSequence: () => PolicySequence,
  ) {}

  /** Saves the sequence, evaluated up to the start of an assistant's turn. */
  remember(sequence: PolicySequence): void {
    const fork = sequence.fork();
    this.owned.add(fork);
    this.checkpoints.push({ sequence: fork, tokens: sequence.tokenCount });
  }

  addSampled(tokenIds: ArrayLike<number>): void {
    this.conversation.addSampled(tokenIds);
  }

  /**
   * @param sequence holds all tokens so far.
   * @param messages the whole conversation, including the answer to its last turn.
   */
  advance(sequence: PolicySequence, messages: readonly ChatMessage[]): NextInput & { sequence: PolicySequence } {
    const { keep, tokenIds, contextIds } = this.conversation.encodeTurn(messages);
    if (keep === sequence.tokenCount) return { sequence, keep, observed: tokenIds, delta: tokenIds };
    while (this.checkpoints.length > 0 && this.checkpoints.at(-1)!.tokens > keep) {
      this.disown(this.checkpoints.pop()!.sequence);
    }
    this.disown(sequence);
    const checkpoint = this.checkpoints.at(-1);
    // Not even the prompt is unchanged: some templates print the tools before the last user message, which moves them.
    const next = checkpoint ? checkpoint.sequence.fork() : this.createSequence();
    this.owned.add(next);
    return { sequence: next, keep, observed: tokenIds, delta: contextIds.slice(checkpoint?.tokens ?? 0) };
  }

  dispose(): void {
    for (const sequence of this.owned) sequence.dispose();
    this.owned.clear();
  }

  private disown(sequence: PolicySequence): void {
    if (this.owned.delete(sequence)) sequence.dispose();
  }
}
