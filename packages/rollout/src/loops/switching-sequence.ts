import type { GenerateOptions, GenerateResult, PolicyEngine, PolicySequence } from "@cria/core";

/** A version of the policy that may sample a turn. All versions are of one model: their tokens are the same. */
export interface SamplingPolicy {
  engine: Pick<PolicyEngine, "createSequence">;
  /** Number of weight updates that it has had, plus 1. */
  policyVersion: number;
}

export interface SwitchingOptions {
  /** The policy that samples a turn of the assistant; turns are counted from 1. Asked when the turn begins. */
  choose: (turn: number) => SamplingPolicy;
  /** Wraps each new sequence, as `ConversationReplay.steer`. */
  steer?: (sequence: PolicySequence) => PolicySequence;
}

/**
 * The turns of one conversation whose policy may change between them (verl's partial rollouts, by turn). The keys and
 * values of another version are useless: where it takes over, the conversation's tokens are evaluated again by it.
 */
export class Switching {
  private turn = 0;
  private readonly opened = new Set<PolicySequence>();

  constructor(private readonly options: SwitchingOptions) {}

  /** @param tokenIds tokens of the sequence so far. */
  begin(sequence: PolicySequence, tokenIds: ArrayLike<number>, policyVersion: number): PolicySequence {
    return new SwitchingSequence(this, sequence, Int32Array.from(tokenIds), policyVersion);
  }

  /** An empty sequence of the policy that samples the next turn. */
  createSequence(): PolicySequence {
    const policy = this.options.choose(this.turn + 1);
    return this.begin(this.open(policy), [], policy.policyVersion);
  }

  /** Counts a turn, and returns the policy that samples it. */
  next(): SamplingPolicy {
    this.turn++;
    return this.options.choose(this.turn);
  }

  open({ engine }: SamplingPolicy): PolicySequence {
    const { steer = (sequence) => sequence } = this.options;
    const sequence = steer(engine.createSequence());
    this.opened.add(sequence);
    return sequence;
  }

  /** Frees the sequences that took over. */
  dispose(): void {
    for (const sequence of this.opened) sequence.dispose();
    this.opened.clear();
  }
}

class SwitchingSequence implements PolicySequence {
  constructor(
    private readonly switching: Switching,
    private sequence: PolicySequence,
    private tokens: Int32Array,
    private policyVersion: number,
  ) {}

  get tokenCount(): number {
    return this.tokens.length;
  }

  async generate(delta: ArrayLike<number>, options: GenerateOptions): Promise<GenerateResult> {
    const given = append(this.tokens, delta);
    const policy = this.switching.next();
    const isOther = policy.policyVersion !== this.policyVersion;
    if (isOther) {
      this.sequence.dispose();
      this.sequence = this.switching.open(policy);
      this.policyVersion = policy.policyVersion;
    }
    const turn = await this.sequence.generate(isOther ? given : delta, options);
    this.tokens = append(given, turn.tokenIds);
    return { ...turn, policyVersion: policy.policyVersion };
  }

  async prefill(delta: ArrayLike<number>, options?: { signal?: AbortSignal }): Promise<void> {
    await this.sequence.prefill(delta, options);
    this.tokens = append(this.tokens, delta);
  }

  fork(): PolicySequence {
    return this.switching.begin(this.sequence.fork(), this.tokens, this.policyVersion);
  }

  dispose(): void {
    this.sequence.dispose();
  }
}

function append(tokens: Int32Array, more: ArrayLike<number>): Int32Array {
  const all = new Int32Array(tokens.length + more.length);
  all.set(tokens);
  all.set(more, tokens.length);
  return all;
}
