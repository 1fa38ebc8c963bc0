import type { OptimizerOptions, ScoreSequence, TrainOptions, TrainResult, TrainSequence } from "../policy-engine.js";
import type { ValueEngine, ValueLossFunction } from "../value-engine.js";

/**
 * A critic without a model: values are a fixed function of each token and the previous one. `train` only runs the loss.
 */
export class FakeValueEngine implements ValueEngine {
  /** In [0, 1). */
  valueAt(tokenIds: ArrayLike<number>, at: number): number {
    return Math.fround(((tokenIds[at]! * 13 + (tokenIds[at - 1] ?? 0) * 7) % 19) / 19);
  }

  async values(sequences: readonly ScoreSequence[], options: { signal?: AbortSignal } = {}): Promise<Float32Array[]> {
    options.signal?.throwIfAborted();
    return sequences.map(({ tokenIds, from = 1 }) =>
      Float32Array.from({ length: tokenIds.length }, (_, at) => (at >= from ? this.valueAt(tokenIds, at) : 0)),
    );
  }

  /** One micro-batch with everything. `gradNorm` is the norm of dLoss/dValues. */
  async train(
    batch: readonly TrainSequence[],
    loss: ValueLossFunction,
    optimizer: OptimizerOptions | null,
    options: Omit<TrainOptions, "temperature"> = {},
  ): Promise<TrainResult> {
    options.signal?.throwIfAborted();
    const offsets = [0];
    const values: number[] = [];
    const columns: Record<string, number[]> = {};
    for (const { tokenIds, lossMask, columns: given = {} } of batch) {
      for (let t = 0; t < tokenIds.length; t++) {
        if (!lossMask[t]) continue;
        values.push(this.valueAt(tokenIds, t));
        for (const [name, column] of Object.entries(given)) {
          columns[name] ??= [];
          columns[name].push(column[t]!);
        }
      }
      offsets.push(values.length);
    }
    const outputs = loss({
      sequenceIndices: Int32Array.from(batch, (_, i) => i),
      offsets: Int32Array.from(offsets),
      values: Float32Array.from(values),
      columns: Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, Float32Array.from(column)])),
      totals: { tokens: values.length, sequences: batch.length },
    });
    return {
      loss: outputs.loss,
      gradNorm: optimizer ? Math.hypot(...outputs.dValues) : 0,
      metrics: outputs.metrics ?? {},
      lossTokens: values.length,
      evaluatedTokens: batch.reduce((sum, sequence) => sum + sequence.tokenIds.length, 0),
      paddingTokens: 0,
      microBatches: 1,
    };
  }

  async dispose(): Promise<void> {}
}
