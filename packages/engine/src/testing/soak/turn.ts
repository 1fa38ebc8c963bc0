import type { GenerateResult, SamplingOptions } from "@cria/core";

/** What one request was asked and what came of it: all that an undisturbed run needs to do it again. */
export interface Turn {
  /** Every token before the first sampled one, however they came into the sequence. */
  prompt: readonly number[];
  request: SamplingOptions & {
    maxTokens: number;
    temperature: number;
    seed: number;
    stopTokens?: number[];
    stopStrings?: string[];
  };
  tokenIds: Int32Array;
  logprobs: Float32Array;
  finishReason: GenerateResult["finishReason"];
  text: string;
  /** Tokens of the prompt whose KV was there already. */
  reused: number;
  /** Version of the weights that it was computed with; null when they changed meanwhile. */
  weights: number | null;
}
