import type { LossFunction, TrainSequence } from "@cria/core";
import type { LlamaModel } from "../llama-model.js";
import { makeNormals } from "./make-tiny-model.js";

export interface GradientCheck {
  name: string;
  /** Directional derivative by central differences. */
  numeric: number;
  /** The same from the accumulated gradient. */
  analytic: number;
  relativeError: number;
}

/** The methods of a model that the gradient check uses. */
export type CheckedModel = Pick<LlamaModel, "train" | "zeroGradients" | "listTensors" | "readTensor" | "writeTensor">;

/**
 * Compares the gradient of each trained tensor with central differences along a direction that mixes the gradient
 * itself (so that the signal exceeds single-precision noise) and a random one (so that no component is hidden). Call it
 * without accumulated gradients; it leaves none.
 */
export async function checkGradients(
  model: CheckedModel,
  batch: readonly TrainSequence[],
  loss: LossFunction,
  options: { step?: number; temperature?: number; names?: (name: string) => boolean } = {},
): Promise<GradientCheck[]> {
  const step = options.step ?? 2e-3;
  const train = { temperature: options.temperature ?? 1 };
  await model.train(batch, loss, null, train);
  const names = model.listTensors().filter((t) => t.trainable && (options.names?.(t.name) ?? true));
  const gradients = new Map<string, Float32Array>();
  for (const { name } of names) gradients.set(name, await model.readTensor(name, "gradient"));
  await model.zeroGradients();
  const evaluate = async () => {
    const { loss: value } = await model.train(batch, loss, null, train);
    await model.zeroGradients();
    return value;
  };
  const normal = makeNormals(11);
  const checks: GradientCheck[] = [];
  for (const { name } of names) {
    const gradient = gradients.get(name)!;
    const random = Float64Array.from(gradient, () => normal());
    const gradientNorm = Math.hypot(...gradient) || 1;
    const randomNorm = Math.hypot(...random);
    // Half the weight for the random direction: otherwise a tensor of one element would cancel.
    const direction = random.map((x, i) => (0.5 * x) / randomNorm + gradient[i]! / gradientNorm);
    const value = await model.readTensor(name);
    const shifted = (sign: number) => Float32Array.from(value, (x, i) => x + sign * step * direction[i]!);
    await model.writeTensor(name, shifted(1));
    const above = await evaluate();
    await model.writeTensor(name, shifted(-1));
    const below = await evaluate();
    await model.writeTensor(name, value);
    const numeric = (above - below) / (2 * step);
    const analytic = direction.reduce((sum, d, i) => sum + d * gradient[i]!, 0);
    checks.push({
      name,
      numeric,
      analytic,
      relativeError: Math.abs(numeric - analytic) / (Math.abs(numeric) + Math.abs(analytic) + 1e-3),
    });
  }
  return checks;
}

/** A loss with a different gradient at every token: sum of weight * logprob + entropyWeight * entropy. */
export const weightedLogprobs: LossFunction = ({ logprobs, entropy, columns }) => {
  const weights = columns.weights!;
  const entropyWeights = columns.entropyWeights ?? new Float32Array(logprobs.length);
  let loss = 0;
  for (let i = 0; i < logprobs.length; i++) loss += weights[i]! * logprobs[i]! + entropyWeights[i]! * entropy[i]!;
  return { loss, dLogprobs: weights, dEntropy: entropyWeights };
};
