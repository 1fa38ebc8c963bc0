import type { GenerateResult } from "@cria/core";

/** Collects what follows a prompt, token by token, with masks and logprobs kept in step. */
export class TrajectoryBuilder {
  private readonly ids: number[] = [];
  private readonly mask: number[] = [];
  private readonly logprobs: number[] = [];

  constructor(private readonly budget: number) {}

  get length(): number {
    return this.ids.length;
  }

  get remaining(): number {
    return this.budget - this.ids.length;
  }

  /** Index in the response of the last sampled token; -1 when there is none. */
  get lastSampled(): number {
    return this.mask.lastIndexOf(1);
  }

  addSampled(result: GenerateResult): void {
    for (let i = 0; i < result.tokenIds.length; i++) this.push(result.tokenIds[i]!, 1, result.logprobs[i]!);
  }

  addObserved(ids: Int32Array): void {
    for (const id of ids) this.push(id, 0, 0);
  }

  build(): { responseIds: Int32Array; responseMask: Uint8Array; responseLogprobs: Float32Array } {
    return {
      responseIds: Int32Array.from(this.ids),
      responseMask: Uint8Array.from(this.mask),
      responseLogprobs: Float32Array.from(this.logprobs),
    };
  }

  private push(id: number, mask: 0 | 1, logprob: number): void {
    this.ids.push(id);
    this.mask.push(mask);
    this.logprobs.push(logprob);
  }
}
