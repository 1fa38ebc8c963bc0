import {
  EngineError,
  type GradientShard,
  type LossFunction,
  type LossTotals,
  type ModelInfo,
  type OptimizerOptions,
  type ShardGradient,
  type TrainCandidates,
  type TrainOptions,
  type TrainResult,
  type TrainSequence,
} from "@cria/core";
import { pickRows } from "@cria/core/internal";
import type { ImageStore } from "../images/image-store.js";
import { JobQueue } from "../job-queue.js";
import { callNative, callNativeSync } from "../native.js";
import type { NativeModel } from "../native-types.js";
import { checkLength, checkTemperature, checkTokens } from "./check-batch.js";
import { computeShard, GradientSum, makeShard, runShard } from "./gradient-shards.js";
import { chooseMicroBatchTokens, estimateCost } from "./micro-batch-size.js";
import { type PlannedMicroBatch, planMicroBatches } from "./plan-micro-batches.js";

interface CheckedSequence {
  tokenIds: Int32Array;
  scored: Int32Array;
  columns: Record<string, ArrayLike<number>>;
  candidates?: TrainCandidates;
}

/** Forward, loss, backward for each micro-batch; then a step, unless `optimizer` is null. */
export async function trainBatch(
  native: NativeModel,
  info: ModelInfo,
  images: ImageStore | undefined,
  batch: readonly TrainSequence[],
  loss: LossFunction,
  optimizer: OptimizerOptions | null,
  options: TrainOptions,
): Promise<TrainResult> {
  const sequences = batch.map((sequence, i) => checkSequence(sequence, info, images, i));
  checkCounts(sequences);
  const totals = {
    tokens: sequences.reduce((sum, s) => sum + s.scored.length, 0),
    sequences: sequences.filter((s) => s.scored.length > 0).length,
  };
  const result: TrainResult = {
    loss: 0,
    gradNorm: 0,
    metrics: {},
    lossTokens: totals.tokens,
    evaluatedTokens: 0,
    paddingTokens: 0,
    microBatches: 0,
  };
  const plans = planMicroBatches(sequences, {
    maxTokens: options.microBatchTokens ?? chooseMicroBatchTokens(info),
    cost: estimateCost(
      info,
      callNativeSync(() => native.attendsBlockwise()),
    ),
    temperature: checkTemperature(options.temperature),
    adapter: true,
    images,
  });
  const abort = () => native.abortTraining();
  options.signal?.addEventListener("abort", abort, { once: true });
  try {
    const shards = plans.map((plan) => makeShard(plan, makeInputs(plan, sequences, totals)));
    const take = (shard: GradientShard, { loss, metrics }: Pick<ShardGradient, "loss" | "metrics">) => {
      result.loss += loss;
      for (const [name, value] of Object.entries(metrics)) result.metrics[name] = (result.metrics[name] ?? 0) + value;
      result.evaluatedTokens += shard.rows * shard.rowLength;
      result.paddingTokens += shard.ends.reduce((count, end) => count + (end === 0 ? 1 : 0), 0);
      result.microBatches++;
    };
    if (options.compute) await computeElsewhere(native, images, shards, loss, options, take);
    else
      for (const shard of shards) {
        options.signal?.throwIfAborted();
        take(shard, await runShard(native, images, shard, loss, options.signal));
      }
    if (optimizer && plans.length > 0) result.gradNorm = await takeStep(native, optimizer);
  } catch (error) {
    // A partial gradient must not leak into the next step.
    await callNative(() => native.zeroGradients()).catch(() => undefined);
    throw error;
  } finally {
    options.signal?.removeEventListener("abort", abort);
  }
  return result;
}

async function takeStep(native: NativeModel, optimizer: OptimizerOptions): Promise<number> {
  const [beta1, beta2] = optimizer.betas ?? [0.9, 0.999];
  const { gradNorm, stepped } = await callNative(() =>
    native.step({
      learningRate: optimizer.learningRate,
      beta1,
      beta2,
      epsilon: optimizer.epsilon ?? 1e-8,
      weightDecay: optimizer.weightDecay ?? 0,
      maxGradNorm: optimizer.maxGradNorm ?? 0,
    }),
  );
  if (!stepped) {
    throw new EngineError("is not finite; the weights are unchanged", {
      code: "engine/bad-gradient",
      subject: "gradient",
      expected: "finite numbers",
      received: `a global norm of ${gradNorm}`,
      remedy: "lower the learning rate, or check the loss for divisions by zero",
    });
  }
  await callNative(() => native.flush());
  return gradNorm;
}

function checkSequence(
  sequence: TrainSequence,
  info: ModelInfo,
  images: ImageStore | undefined,
  index: number,
): CheckedSequence {
  const subject = `train: sequence ${index}`;
  const tokenIds = checkTokens(sequence.tokenIds, info, images, subject);
  checkLength(sequence.lossMask.length, tokenIds.length, `${subject}, lossMask`);
  for (const [name, column] of Object.entries(sequence.columns ?? {}))
    checkLength(column.length, tokenIds.length, `${subject}, column ${name}`);
  if (sequence.lossMask[0]) {
    throw new EngineError("marks the first token, which has no prefix to be predicted from", {
      code: "engine/bad-batch",
      subject: `${subject}, lossMask`,
      expected: "0 at index 0",
      received: `${sequence.lossMask[0]}`,
    });
  }
  const scored: number[] = [];
  for (let t = 1; t < tokenIds.length; t++) {
    if (!sequence.lossMask[t]) continue;
    if (tokenIds[t]! >= info.vocabSize) {
      throw new EngineError("is a vector of an image, which cannot be predicted", {
        code: "engine/bad-batch",
        subject: `${subject}, token ${t}`,
        expected: "a lossMask of 0",
        received: `${sequence.lossMask[t]}`,
      });
    }
    scored.push(t);
  }
  const { candidates } = sequence;
  if (candidates) checkCandidates(candidates, tokenIds.length, scored, info, subject);
  return {
    tokenIds,
    scored: Int32Array.from(scored),
    columns: sequence.columns ?? {},
    ...(candidates ? { candidates } : {}),
  };
}

function checkCandidates(
  { count, ids, columns }: TrainCandidates,
  tokens: number,
  scored: readonly number[],
  info: ModelInfo,
  subject: string,
): void {
  checkLength(ids.length, tokens * count, `${subject}, candidates`);
  for (const [name, column] of Object.entries(columns))
    checkLength(column.length, tokens * count, `${subject}, candidates' column ${name}`);
  for (const t of scored) {
    for (let k = t * count; k < (t + 1) * count; k++) {
      if (ids[k]! >= 0 && ids[k]! < info.vocabSize) continue;
      throw new EngineError("has a candidate outside the vocabulary", {
        code: "engine/bad-token",
        subject: `${subject}, token ${t}`,
        expected: `0 to ${info.vocabSize - 1}`,
        received: `${ids[k]}`,
      });
    }
  }
}

/** Checks that all sequences have as many candidates for each token. */
function checkCounts(sequences: readonly CheckedSequence[]): void {
  const counts = sequences.map(({ candidates }) => candidates?.count ?? 0);
  const other = counts.findIndex((count) => count !== counts[0]);
  if (other < 0) return;
  throw new EngineError("has another number of candidates than the first sequence", {
    code: "engine/bad-batch",
    subject: `train: sequence ${other}`,
    expected: `${counts[0]} for each token`,
    received: `${counts[other]}`,
  });
}

function makeInputs(
  plan: PlannedMicroBatch,
  sequences: readonly CheckedSequence[],
  totals: LossTotals,
): Pick<GradientShard, "inputs" | "candidateColumns"> {
  const { sequenceIndices, offsets } = plan;
  const columns = gatherColumns(plan, (index) => ({ ...sequences[index]!, width: 1 }));
  const inputs = { sequenceIndices, offsets, columns, totals };
  if (!plan.microBatch.candidates) return { inputs };
  const candidateColumns = gatherColumns(plan, (index) => {
    const { scored, candidates } = sequences[index]!;
    return { scored, columns: candidates!.columns, width: candidates!.count };
  });
  return { inputs, candidateColumns };
}

/**
 * Gathers the columns of a micro-batch's scored tokens.
 * @param read returns a sequence's columns, with `width` values for each token.
 */
function gatherColumns(
  { sequenceIndices, offsets, scores }: PlannedMicroBatch,
  read: (index: number) => Pick<CheckedSequence, "scored" | "columns"> & { width: number },
): Record<string, Float32Array> {
  const columns: Record<string, Float32Array> = {};
  sequenceIndices.forEach((index, i) => {
    const { scored, columns: source, width } = read(index);
    const base = offsets[i]!;
    for (const [name, values] of Object.entries(source)) {
      columns[name] ??= new Float32Array(scores.length * width);
      columns[name].set(pickRows(values, scored, width), base * width);
    }
  });
  return columns;
}

/** Starts all shards at once and adds their gradients in order. */
async function computeElsewhere(
  native: NativeModel,
  images: ImageStore | undefined,
  shards: readonly GradientShard[],
  loss: LossFunction,
  { compute, signal }: TrainOptions,
  take: (shard: GradientShard, found: ShardGradient) => void,
): Promise<void> {
  const sum = await GradientSum.open(native);
  const here = new JobQueue();
  const asked = shards.map((shard) => {
    const found = compute!(shard, () =>
      here.run(async () => {
        signal?.throwIfAborted();
        return computeShard(native, images, shard, loss, signal);
      }),
    );
    // It is awaited below, perhaps after another one has failed.
    found.catch(() => undefined);
    return found;
  });
  try {
    for (const [i, shard] of shards.entries()) {
      const found = await asked[i]!;
      signal?.throwIfAborted();
      sum.add(found);
      take(shard, found);
    }
  } catch (error) {
    // Waits for all, so that none uses the addon during the next call.
    await Promise.allSettled(asked);
    throw error;
  }
  await sum.write();
}
