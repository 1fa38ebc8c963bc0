import type { GenerateOptions, GenerateResult, PolicyEngine, PolicySequence } from "@cria/core";

/** A version of the policy, or another model with its vocabulary, that may sample a turn. */
export interface SamplingPolicy {
  engine: Pick<PolicyEngine, "createSequence">;
  /** Number of weight updates that it has had, plus 1. Left out: the rollout's version, or a model of its own. */
  policyVersion?: number;
  /** Left out: it is the policy. */
  sampledBy?: "teacher";
  /**
   * True if it goes on with the keys and values of the version that sampled the turn before. Left out: it evaluates
   * the conversation's tokens again.
   */
  keepsKv?: boolean;
}

export interface SwitchingOptions {
  /**
   * The policy that samples a turn of the assistant; turns are counted from 1. Asked when the turn begins, and when an
   * empty sequence is created for it.
   */
  choose: (turn: number) => SamplingPolicy;
  /** Wraps each new sequence, as `ConversationReplay.steer`. */
  steer?: (sequence: PolicySequence) => PolicySequence;
}

/**
 * The turns of one conversation that several policies sample: versions (verl's partial rollouts, by turn), or a
 * teacher. Where another one takes over, it evaluates the conversation's tokens again, unless it keeps the keys and
 * values of the one before. The first turn of a sequence keeps none, so that the prompt is of the version that
 * samples it.
 */
export class Switching {
  private turn = 0;
  private readonly opened = new Set<PolicySequence>();

  constructor(private readonly options: SwitchingOptions) {}

  /**
   * @param tokenIds tokens of the sequence so far.
   * @param engine the sequence's engine; null: whoever samples the next turn takes over.
   */
  begin(
    sequence: PolicySequence,
    tokenIds: ArrayLike<number>,
    engine: SamplingPolicy["engine"] | null,
  ): PolicySequence {
    return new SwitchingSequence(this, sequence, Int32Array.from(tokenIds), engine, false);
  }

  /** An empty sequence of the policy that samples the next turn. */
  createSequence(): PolicySequence {
    const policy = this.options.choose(this.turn + 1);
    return this.begin(this.open(policy), [], policy.engine);
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
    private engine: SamplingPolicy["engine"] | null,
    /** True if one of its turns was sampled. */
    private sampled: boolean,
  ) {}

  get tokenCount(): number {
    return this.tokens.length;
  }

  async generate(delta: ArrayLike<number>, options: GenerateOptions): Promise<GenerateResult> {
    const given = append(this.tokens, delta);
    const policy = this.switching.next();
    const { engine, policyVersion, sampledBy, keepsKv } = policy;
    const isOther = engine !== this.engine;
    const isNew = isOther && !(keepsKv && this.sampled);
    if (isNew) {
      this.sequence.dispose();
      this.sequence = this.switching.open(policy);
    } else if (isOther) {
      this.sequence.goOnWith!(engine);
    }
    this.engine = engine;
    this.sampled = true;
    const turn = await this.sequence.generate(isNew ? given : delta, options);
    this.tokens = append(given, turn.tokenIds);
    return {
      ...turn,
      ...(policyVersion === undefined ? {} : { policyVersion }),
      ...(sampledBy === undefined ? {} : { sampledBy }),
    };
  }

  async prefill(delta: ArrayLike<number>, options?: { signal?: AbortSignal }): Promise<void> {
    await this.sequence.prefill(delta, options);
    this.tokens = append(this.tokens, delta);
  }

  fork(): PolicySequence {
    return new SwitchingSequence(this.switching, this.sequence.fork(), this.tokens, this.engine, this.sampled);
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
