import type { Training } from "../run/training.js";

/** Reads the trained values of a training's policy, by the names of their tensors. */
export async function readWeights({ policy }: Pick<Training, "policy">): Promise<Record<string, number[]>> {
  const engine = policy.engine as never as {
    listTensors(): { name: string; trainable: boolean }[];
    readTensor(name: string): Promise<Float32Array>;
  };
  const weights: Record<string, number[]> = {};
  for (const { name, trainable } of engine.listTensors())
    if (trainable) weights[name] = [...(await engine.readTensor(name))];
  return weights;
}
