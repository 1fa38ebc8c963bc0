import type {
  ModelInfo,
  OptimizerOptions,
  ScoreSequence,
  TrainOptions,
  TrainResult,
  TrainSequence,
  ValueEngine,
  ValueLossFunction,
} from "@cria/core";
import type { ImageStore } from "./images/image-store.js";
import { openImages } from "./images/open-images.js";
import { JobQueue } from "./job-queue.js";
import { type LoadModelOptions, loadNative } from "./load-native.js";
import { callNative, callNativeSync } from "./native.js";
import type { NativeModel, TensorInfo, TensorPart } from "./native-types.js";
import { scoreSequences } from "./training/score-sequences.js";
import { trainBatch } from "./training/train-batch.js";

/** The part of `LoadModelOptions` that applies to a critic. */
export type LoadValueModelOptions = Pick<
  LoadModelOptions,
  | "path"
  | "device"
  | "gpuLayers"
  | "scoredContextSize"
  | "threads"
  | "lora"
  | "trainable"
  | "seed"
  | "trainingMemory"
  | "mmproj"
  | "imageMinTokens"
  | "imageMaxTokens"
  | "imageMemory"
  | "imageEncodeMemory"
>;

/**
 * A critic on a GGUF backbone: v = w · norm(h) + b on the last hidden state, with `w` and `b` zero at first. With LoRA
 * the weights are pages of the same file as the actor's, so the critic only costs its adapter and its activations.
 * @throws EngineError as `loadModel` does.
 */
export async function loadValueModel(options: LoadValueModelOptions): Promise<ValueModel> {
  const native = await loadNative({ ...options, contextSize: 64, maxSequences: 1 }, { valueHead: true });
  try {
    return new ValueModel(native, await openImages(native, options));
  } catch (error) {
    await native.dispose();
    throw error;
  }
}

export class ValueModel implements ValueEngine {
  readonly info: ModelInfo;
  private readonly jobs = new JobQueue();

  /** @param images if the model takes images. */
  constructor(
    private readonly native: NativeModel,
    readonly images?: ImageStore,
  ) {
    const { chatTemplate: _, notice: _notice, ...info } = native.info();
    this.info = info;
  }

  values(sequences: readonly ScoreSequence[], options: { signal?: AbortSignal } = {}): Promise<Float32Array[]> {
    return this.jobs.run(async () => {
      const results = await scoreSequences(this.native, this.info, this.images, sequences, options);
      return results.map(({ logprobs }) => logprobs);
    });
  }

  train(
    batch: readonly TrainSequence[],
    loss: ValueLossFunction,
    optimizer: OptimizerOptions | null,
    options: Omit<TrainOptions, "temperature"> = {},
  ): Promise<TrainResult> {
    return this.jobs.run(() =>
      trainBatch(
        this.native,
        this.info,
        this.images,
        batch,
        ({ logprobs, entropy: _, ...inputs }) => {
          const { dValues, ...outputs } = loss({ ...inputs, values: logprobs });
          return { ...outputs, dLogprobs: dValues };
        },
        optimizer,
        options,
      ),
    );
  }

  /** Discards gradients that were accumulated without a step. */
  zeroGradients(): Promise<void> {
    return this.jobs.run(() => callNative(() => this.native.zeroGradients()));
  }

  /** Names, types and shapes of all tensors; the head's are `value_head.weight` and `value_head.bias`. */
  listTensors(): TensorInfo[] {
    return callNativeSync(() => this.native.tensors());
  }

  readTensor(name: string, part: TensorPart = "value"): Promise<Float32Array> {
    return this.jobs.run(() => callNative(() => this.native.readTensor(name, part)));
  }

  writeTensor(name: string, values: Float32Array, part: TensorPart = "value"): Promise<void> {
    return this.jobs.run(() => callNative(() => this.native.writeTensor(name, part, values)));
  }

  /** Number of optimizer steps taken; Adam's bias correction depends on it. */
  get stepCount(): number {
    return callNativeSync(() => this.native.stepCount());
  }

  set stepCount(count: number) {
    callNativeSync(() => this.native.setStepCount(count));
  }

  async dispose(): Promise<void> {
    await Promise.all([this.images?.dispose(), callNative(() => this.native.dispose())]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose();
  }
}
