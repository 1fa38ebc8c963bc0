import type { ChatMessage, PolicySequence } from "@cria/core";
import type { InferenceConversation } from "@cria/tokenizer-delta";

interface Checkpoint {
  sequence: PolicySequence;
  /** Tokens that it holds. */
  tokens: number;
}

/** The tokens to evaluate next, and their position. */
export interface NextInput {
  /** Tokens of the trajectory that stay as they are. */
  keep: number;
  /** The tokens after them in the trajectory, with mask 0. */
  observed: Int32Array;
  /** Those tokens of both that the sequence has not evaluated. */
  delta: Int32Array;
}

/**
 * A conversation as production renders it: templates that drop the reasoning of earlier turns change what was already
 * evaluated. A fork of the sequence is kept where each turn begins; when the rendering changes, evaluation goes on in a
 * fork of the last one before the change.
 */
export class ProductionView {
  private readonly checkpoints: Checkpoint[] = [];
  private readonly owned = new Set<PolicySequence>();

  /** @param conversation has encoded the prompt, which the engine holds. */
  constructor(
    private readonly conversation: InferenceConversation,
    private readonly createSequence: () => PolicySequence,
  ) {}

  /** Remembers the sequence as it is: evaluated up to where an assistant begins to speak. */
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
   * @param messages the whole conversation, an answer to its last turn included.
   */
  advance(sequence: PolicySequence, messages: readonly ChatMessage[]): NextInput & { sequence: PolicySequence } {
    const { keep, tokenIds, contextIds } = this.conversation.encodeTurn(messages);
    if (keep === sequence.tokenCount) return { sequence, keep, observed: tokenIds, delta: tokenIds };
    while (this.checkpoints.length > 0 && this.checkpoints.at(-1)!.tokens > keep) {
      this.disown(this.checkpoints.pop()!.sequence);
    }
    this.disown(sequence);
    const checkpoint = this.checkpoints.at(-1);
    // Not even the prompt stayed: templates that print tools before the last user message move them.
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
