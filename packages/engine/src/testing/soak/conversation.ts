import type { GenerateOptions, GenerateResult } from "@cria/core";
import type { LlamaSequence } from "../../llama-sequence.js";
import type { SoakState } from "./soak-state.js";

/** Most forks of one root, including forks of forks: the load must not grow with time. */
const MOST_FORKS = 8;

/** A sequence, with a separate record of the tokens sent and sampled. */
export class Conversation {
  /** @param temperature temperature of every request. */
  constructor(
    private readonly state: SoakState,
    readonly temperature: number,
    private sequence: LlamaSequence = state.model.createSequence(),
    readonly tokens: number[] = [],
    private readonly family = { forks: 0 },
  ) {}

  get mayFork(): boolean {
    return this.family.forks < MOST_FORKS;
  }

  async prefill(delta: readonly number[], signal?: AbortSignal): Promise<void> {
    await this.sequence.prefill(delta, { signal });
    this.tokens.push(...delta);
    this.state.counts.prefills++;
  }

  async generate(delta: readonly number[], options: GenerateOptions): Promise<GenerateResult> {
    const result = await this.sequence.generate(delta, options);
    this.tokens.push(...delta, ...result.tokenIds);
    return result;
  }

  fork(): Conversation {
    this.state.counts.forks++;
    this.family.forks++;
    return new Conversation(this.state, this.temperature, this.sequence.fork(), [...this.tokens], this.family);
  }

  /** Starts again without tokens, in the same sequence or in another. */
  restart(resets: boolean): void {
    if (resets) {
      this.sequence.reset();
    } else {
      this.sequence.dispose();
      this.sequence = this.state.model.createSequence();
    }
    this.tokens.length = 0;
    this.state.counts.restarts++;
  }

  /** Checks that the engine holds the same tokens. */
  checkTokens(): void {
    const held = this.sequence.tokenIds;
    if (
      held.length !== this.tokens.length ||
      this.sequence.tokenCount !== held.length ||
      this.tokens.some((token, i) => token !== held[i])
    )
      this.state.fail(`a sequence holds [${held}], not [${this.tokens}]`);
  }

  dispose(): void {
    this.sequence.dispose();
  }
}
