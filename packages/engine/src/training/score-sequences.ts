import type { ModelInfo, ScoreOptions, ScoreResult, ScoreSequence } from "@cria/core";
import { callNative, callNativeSync } from "../native.js";
import type { NativeModel } from "../native-types.js";
import { checkTemperature, checkTokens } from "./check-batch.js";
import { chooseMicroBatchTokens, estimateCost } from "./micro-batch-size.js";
import { planMicroBatches, spreadScores } from "./plan-micro-batches.js";

/** Logprobs (entropies, sums of squared probabilities) of given tokens by the training graph. */
export async function scoreSequences(
  native: NativeModel,
  info: ModelInfo,
  sequences: readonly ScoreSequence[],
  options: ScoreOptions,
): Promise<ScoreResult[]> {
  const inputs = sequences.map((sequence, i) => {
    const tokenIds = checkTokens(sequence.tokenIds, info, `score: sequence ${i}`);
    const from = Math.max(1, sequence.from ?? 1);
    const scored = Int32Array.from({ length: Math.max(0, tokenIds.length - from) }, (_, k) => from + k);
    return { tokenIds, scored };
  });
  const results: ScoreResult[] = inputs.map(({ tokenIds }) => ({
    logprobs: new Float32Array(tokenIds.length),
    entropy: options.entropy ? new Float32Array(tokenIds.length) : null,
    sumPiSquared: options.sumPiSquared ? new Float32Array(tokenIds.length) : null,
  }));
  const plans = planMicroBatches(inputs, {
    maxTokens: chooseMicroBatchTokens(info),
    cost: estimateCost(
      info,
      callNativeSync(() => native.attendsBlockwise()),
    ),
    temperature: checkTemperature(options.temperature),
    adapter: options.adapter ?? true,
  });
  for (const plan of plans) {
    options.signal?.throwIfAborted();
    const withSquares = options.sumPiSquared ?? false;
    const found = await callNative(() => native.forward(plan.native, false, withSquares));
    const logprobs = spreadScores(plan.scores, found.logprobs);
    const entropy = spreadScores(plan.scores, found.entropy);
    const sumSquares = found.sumSquares && spreadScores(plan.scores, found.sumSquares);
    plan.sequenceIndices.forEach((index, i) => {
      const { scored } = inputs[index]!;
      const base = plan.offsets[i]!;
      for (let k = 0; k < scored.length; k++) {
        results[index]!.logprobs[scored[k]!] = logprobs[base + k]!;
        if (options.entropy) results[index]!.entropy![scored[k]!] = entropy[base + k]!;
        if (sumSquares) results[index]!.sumPiSquared![scored[k]!] = sumSquares[base + k]!;
      }
    });
  }
  return results;
}
