import { EngineError, type GradientShard, type LossFunction, type LossOutputs, type ShardGradient } from "@cria/core";
import { pickRows } from "@cria/core/internal";
import type { ImageStore } from "../images/image-store.js";
import { callNative, callNativeSync } from "../native.js";
import type { NativeModel } from "../native-types.js";
import { checkLength, checkTemperature } from "./check-batch.js";
import { type PlannedMicroBatch, sumGradients } from "./plan-micro-batches.js";
import { withVectors } from "./shard-images.js";

/** Forward, loss, backward: adds the gradient to the addon's. */
export async function runShard(
  native: NativeModel,
  store: ImageStore | undefined,
  shard: GradientShard,
  loss: LossFunction,
  signal?: AbortSignal,
): Promise<Required<Pick<LossOutputs, "loss" | "metrics">>> {
  const { scores, inputs, candidateColumns: columns = {}, images, ...microBatch } = shard;
  const found = await withVectors(store, images, signal, (vectors) =>
    callNative(() => native.forward({ ...microBatch, adapter: true, vectors }, true)),
  );
  const count = shard.targets.length;
  const width = countCandidates(shard);
  const candidates = shard.candidates
    ? {
        candidates: {
          count: width,
          ids: pickRows(shard.candidates, scores, width),
          logprobs: pickRows(found.candidates!, scores, width),
          columns,
        },
      }
    : {};
  const outputs = loss({
    ...inputs,
    ...candidates,
    logprobs: pickRows(found.logprobs, scores),
    entropy: pickRows(found.entropy, scores),
  });
  checkLength(outputs.dLogprobs.length, scores.length, "loss: dLogprobs");
  if (outputs.dEntropy) checkLength(outputs.dEntropy.length, scores.length, "loss: dEntropy");
  const { dCandidates } = outputs;
  if (dCandidates) checkLength(dCandidates.length, scores.length * width, "loss: dCandidates");
  const dLogprobs = sumGradients(scores, count, outputs.dLogprobs);
  const dEntropy = sumGradients(scores, count, outputs.dEntropy ?? new Float32Array(scores.length));
  const ofCandidates = shard.candidates
    ? sumGradients(scores, count, dCandidates ?? new Float32Array(scores.length * width), width)
    : undefined;
  await callNative(() => native.backward(dLogprobs, dEntropy, ofCandidates));
  return { loss: outputs.loss, metrics: outputs.metrics ?? {} };
}

/** Computes only this shard's gradient: discards the addon's gradients before and after. */
export async function computeShard(
  native: NativeModel,
  store: ImageStore | undefined,
  shard: GradientShard,
  loss: LossFunction,
  signal?: AbortSignal,
): Promise<ShardGradient> {
  checkShard(shard);
  await callNative(() => native.zeroGradients());
  try {
    const { loss: value, metrics } = await runShard(native, store, shard, loss, signal);
    return { gradient: await readGradient(native), loss: value, metrics };
  } finally {
    await callNative(() => native.zeroGradients()).catch(() => undefined);
  }
}

/** Adds gradients in their order of arrival, in F32 like the addon, to the addon's gradients. */
export class GradientSum {
  private constructor(
    private readonly native: NativeModel,
    private readonly sum: Float32Array,
  ) {}

  static async open(native: NativeModel): Promise<GradientSum> {
    return new GradientSum(native, await readGradient(native));
  }

  /** @throws EngineError when it is not a gradient of this engine's tensors. */
  add({ gradient }: ShardGradient): void {
    const { sum } = this;
    if (gradient.length !== sum.length) {
      throw new EngineError("belongs to another model", {
        code: "engine/bad-gradient",
        subject: "gradient of a micro-batch",
        expected: `${sum.length} values, one for each trained weight`,
        received: `${gradient.length}`,
      });
    }
    for (let i = 0; i < sum.length; i++) sum[i]! += gradient[i]!;
  }

  /** Writes the sum to the addon. */
  async write(): Promise<void> {
    let start = 0;
    for (const { name, size } of listTrained(this.native)) {
      const values = this.sum.subarray(start, start + size);
      await callNative(() => this.native.writeTensor(name, "gradient", values));
      start += size;
    }
  }
}

/** Combines a planned micro-batch with the inputs of its loss. */
export function makeShard(
  plan: PlannedMicroBatch,
  { inputs, candidateColumns }: Pick<GradientShard, "inputs" | "candidateColumns">,
): GradientShard {
  const { adapter: _, ...microBatch } = plan.microBatch;
  return { ...microBatch, scores: plan.scores, inputs, ...(candidateColumns ? { candidateColumns } : {}) };
}

/** Number of candidates of each target; 0: none. */
function countCandidates({ candidates, targets }: GradientShard): number {
  return candidates ? candidates.length / targets.length : 0;
}

async function readGradient(native: NativeModel): Promise<Float32Array> {
  const tensors = listTrained(native);
  const gradient = new Float32Array(tensors.reduce((sum, { size }) => sum + size, 0));
  let start = 0;
  for (const { name, size } of tensors) {
    gradient.set(await callNative(() => native.readTensor(name, "gradient")), start);
    start += size;
  }
  return gradient;
}

function listTrained(native: NativeModel): { name: string; size: number }[] {
  return callNativeSync(() => native.tensors())
    .filter(({ trainable }) => trainable)
    .map(({ name, shape }) => ({ name, size: shape.reduce((product, axis) => product * axis, 1) }));
}

/** Checks data that came from elsewhere; the addon checks the tokens themselves. */
function checkShard(shard: GradientShard): void {
  const { inputs, scores, targets, temperature, candidateColumns = {} } = shard;
  checkTemperature(temperature);
  if (scores.every((score) => score >= 0 && score < targets.length)) {
    for (const [name, column] of Object.entries(inputs.columns))
      checkLength(column.length, scores.length, `column ${name}`);
    for (const [name, column] of Object.entries(candidateColumns))
      checkLength(column.length, scores.length * countCandidates(shard), `candidates' column ${name}`);
    return;
  }
  throw new EngineError("has a token without a score", {
    code: "engine/bad-batch",
    subject: "gradient shard",
    expected: `scores from 0 to ${targets.length - 1}`,
    received: `${scores.find((score) => score < 0 || score >= targets.length)}`,
  });
}
