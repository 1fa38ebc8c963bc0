import type { ImageEncoder } from "./images/image-encoder.js";
import type {
  LossInputs,
  LossOutputs,
  OptimizerOptions,
  ScoreSequence,
  TrainOptions,
  TrainResult,
  TrainSequence,
} from "./policy-engine.js";

/** Inputs of a value loss for one micro-batch: as `LossInputs`, with values instead of logprobs. */
export type ValueLossInputs = Omit<LossInputs, "logprobs" | "entropy" | "candidates"> & { values: Float32Array };

/** `dValues` is dLoss/dValue for each token of the inputs. */
export type ValueLossOutputs = Omit<LossOutputs, "dLogprobs" | "dEntropy" | "dCandidates"> & { dValues: Float32Array };

export type ValueLossFunction = (inputs: ValueLossInputs) => ValueLossOutputs;

/** A critic: the expected return of each state of a sequence. */
export interface ValueEngine {
  /**
   * The critic's own image encoder, which defines the ids in its sequences. Absent: it was loaded without a projector,
   * and takes only text.
   */
  readonly images?: ImageEncoder | undefined;
  /**
   * Values, each as long as its `tokenIds`: `values[t]` belongs to the state in which token t was chosen, which is
   * `tokenIds[0 .. t - 1]`; 0 before `from`.
   */
  values(sequences: readonly ScoreSequence[], options?: { signal?: AbortSignal }): Promise<Float32Array[]>;
  /** Forward, `loss`, backward over micro-batches; then one optimizer step, unless `optimizer` is null. */
  train(
    batch: readonly TrainSequence[],
    loss: ValueLossFunction,
    optimizer: OptimizerOptions | null,
    options?: Omit<TrainOptions, "temperature">,
  ): Promise<TrainResult>;
  dispose(): Promise<void>;
}
