import {
  EngineError,
  type LossFunction,
  type LossInputs,
  type LossOutputs,
  type ModelInfo,
  type OptimizerOptions,
  type TrainOptions,
  type TrainResult,
  type TrainSequence,
} from "@cria/core";
import { callNative, callNativeSync } from "../native.js";
import type { NativeModel, NativeScores } from "../native-types.js";
import { checkLength, checkTemperature, checkTokens } from "./check-batch.js";
import { chooseMicroBatchTokens, estimateCost } from "./micro-batch-size.js";
import { type PlannedMicroBatch, planMicroBatches, spreadScores, sumGradients } from "./plan-micro-batches.js";

interface CheckedSequence {
  tokenIds: Int32Array;
  scored: Int32Array;
  columns: Record<string, ArrayLike<number>>;
}

/** Forward, loss, backward for each micro-batch; then a step, unless `optimizer` is null. */
export async function trainBatch(
  native: NativeModel,
  info: ModelInfo,
  batch: readonly TrainSequence[],
  loss: LossFunction,
  optimizer: OptimizerOptions | null,
  options: TrainOptions,
): Promise<TrainResult> {
  const sequences = batch.map((sequence, i) => checkSequence(sequence, info, i));
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
  });
  const abort = () => native.abortTraining();
  options.signal?.addEventListener("abort", abort, { once: true });
  try {
    for (const plan of plans) {
      options.signal?.throwIfAborted();
      const scores = await callNative(() => native.forward(plan.native, true));
      const outputs = loss(makeLossInputs(plan, scores, sequences, totals));
      checkOutputs(outputs, plan.scores.length);
      const dLogprobs = sumGradients(plan, outputs.dLogprobs);
      const dEntropy = sumGradients(plan, outputs.dEntropy ?? new Float32Array(plan.scores.length));
      await callNative(() => native.backward(dLogprobs, dEntropy));
      result.loss += outputs.loss;
      for (const [name, value] of Object.entries(outputs.metrics ?? {}))
        result.metrics[name] = (result.metrics[name] ?? 0) + value;
      result.evaluatedTokens += plan.native.rows * plan.native.rowLength;
      result.paddingTokens += plan.paddingTokens;
      result.microBatches++;
    }
    if (optimizer && plans.length > 0) result.gradNorm = await takeStep(native, optimizer);
  } catch (error) {
    // Half a gradient must not leak into the next step.
    await native.zeroGradients().catch(() => undefined);
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
    throw new EngineError("is not finite; the weights were left as they were", {
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

function checkSequence(sequence: TrainSequence, info: ModelInfo, index: number): CheckedSequence {
  const subject = `train: sequence ${index}`;
  const tokenIds = checkTokens(sequence.tokenIds, info, subject);
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
  for (let t = 1; t < tokenIds.length; t++) if (sequence.lossMask[t]) scored.push(t);
  return { tokenIds, scored: Int32Array.from(scored), columns: sequence.columns ?? {} };
}

function makeLossInputs(
  plan: PlannedMicroBatch,
  scores: NativeScores,
  sequences: readonly CheckedSequence[],
  totals: LossInputs["totals"],
): LossInputs {
  const columns: Record<string, Float32Array> = {};
  plan.sequenceIndices.forEach((index, i) => {
    const { scored, columns: source } = sequences[index]!;
    const base = plan.offsets[i]!;
    for (const [name, values] of Object.entries(source)) {
      columns[name] ??= new Float32Array(plan.scores.length);
      for (let k = 0; k < scored.length; k++) columns[name][base + k] = values[scored[k]!]!;
    }
  });
  return {
    sequenceIndices: plan.sequenceIndices,
    offsets: plan.offsets,
    logprobs: spreadScores(plan, scores.logprobs),
    entropy: spreadScores(plan, scores.entropy),
    columns,
    totals,
  };
}

function checkOutputs(outputs: LossOutputs, count: number): void {
  checkLength(outputs.dLogprobs.length, count, "loss: dLogprobs");
  if (outputs.dEntropy) checkLength(outputs.dEntropy.length, count, "loss: dEntropy");
}
