import type { LossInputs, LossOutputs } from "@cria/core";
import type { LossTermValues } from "./loss-term.js";
import type { Selection } from "./select-tokens.js";

/** Adds up the gradients of a loss's terms over the tokens of one micro-batch. */
export class GradientSum {
  private readonly ofLogprobs: Float64Array;
  private ofEntropy: Float64Array | null = null;
  private ofCandidates: Float64Array | null = null;
  private readonly count: number;

  constructor({ logprobs, candidates }: LossInputs) {
    this.ofLogprobs = new Float64Array(logprobs.length);
    this.count = candidates?.count ?? 0;
  }

  /** @param weights of the tokens that the term sees. */
  add(
    { kept, inputs }: Selection,
    { gradients, entropyGradients, candidateGradients }: LossTermValues,
    weights: ArrayLike<number>,
    coefficient: number,
  ): void {
    const tokens = this.ofLogprobs.length;
    if (entropyGradients) this.ofEntropy ??= new Float64Array(tokens);
    if (candidateGradients) this.ofCandidates ??= new Float64Array(tokens * this.count);
    for (let i = 0; i < inputs.logprobs.length; i++) {
      const at = kept ? kept[i]! : i;
      const weight = weights[i]! * coefficient;
      this.ofLogprobs[at]! += weight * gradients[i]!;
      if (entropyGradients) this.ofEntropy![at]! += weight * entropyGradients[i]!;
      if (!candidateGradients) continue;
      for (let k = 0; k < this.count; k++)
        this.ofCandidates![at * this.count + k]! += weight * candidateGradients[i * this.count + k]!;
    }
  }

  round(): Pick<LossOutputs, "dLogprobs" | "dEntropy" | "dCandidates"> {
    return {
      dLogprobs: Float32Array.from(this.ofLogprobs),
      dEntropy: this.ofEntropy ? Float32Array.from(this.ofEntropy) : undefined,
      dCandidates: this.ofCandidates ? Float32Array.from(this.ofCandidates) : undefined,
    };
  }
}
