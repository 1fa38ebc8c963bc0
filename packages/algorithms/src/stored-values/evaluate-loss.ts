import { composePolicyLoss, type PolicyLossOptions, preparePolicyLoss } from "../index.js";
import { toOffsets } from "./stored-values.js";

/** A whole mini-batch in one micro-batch; all its tokens are in the loss, and sequences without one are left out. */
export function evaluateLoss(
  options: PolicyLossOptions,
  lengths: readonly number[],
  givenLogprobs: readonly number[],
  entropy: readonly number[],
  givenColumns: Record<string, readonly number[]>,
) {
  const offsets = toOffsets(lengths);
  const logprobs = Float32Array.from(givenLogprobs);
  const columns = Object.entries(givenColumns).map(([name, values]) => [name, Float32Array.from(values)] as const);
  const sequences = Array.from({ length: offsets.length - 1 }, (_, s) => {
    const [from, to] = [offsets[s]!, offsets[s + 1]!];
    return {
      tokenIds: new Int32Array(to - from),
      lossMask: new Uint8Array(to - from).fill(1),
      columns: Object.fromEntries(columns.map(([name, values]) => [name, values.slice(from, to)])),
    };
  });
  const cutLogprobs = sequences.map((_, s) => logprobs.slice(offsets[s], offsets[s + 1]));
  const prepared = preparePolicyLoss(options, sequences, cutLogprobs, () => 0);
  const joined = Object.keys(prepared[0]!.columns!).map((name) => [
    name,
    Float32Array.from(prepared.flatMap((sequence) => Array.from(sequence.columns![name]!))),
  ]);
  const result = composePolicyLoss(options)({
    sequenceIndices: Int32Array.from(sequences, (_, i) => i),
    offsets,
    logprobs,
    entropy: Float32Array.from(entropy),
    columns: Object.fromEntries(joined),
    totals: { tokens: logprobs.length, sequences: sequences.length },
  });
  return {
    loss: result.loss,
    d_logprobs: [...result.dLogprobs],
    d_entropy: [...(result.dEntropy ?? new Float32Array(logprobs.length))],
    metrics: result.metrics!,
  };
}
