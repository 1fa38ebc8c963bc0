import type { GenerateResult, SamplingOptions } from "@cria/core";

/** One request and its result: all data to repeat it undisturbed. */
export interface Turn {
  /** Every token before the first sampled one, in whatever way it was added. */
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
  /** Number of the prompt's tokens whose KV was cached. */
  reused: number;
  /** Version of the weights that it was computed with; null when they changed meanwhile. */
  weights: number | null;
}
