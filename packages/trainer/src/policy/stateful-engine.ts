import type { LlamaModel } from "@cria/engine";

/** An engine whose trained tensors, with their optimizer's state, can be read and written. */
export type StatefulEngine = Pick<LlamaModel, "info" | "listTensors" | "readTensor" | "writeTensor" | "stepCount">;

export interface TrainedTensor {
  name: string;
  shape: number[];
}

/** The parts of the trained state of a tensor: its values, and AdamW's two moments. */
export const TENSOR_PARTS = ["value", "moment1", "moment2"] as const;

export function isStateful(engine: object): engine is StatefulEngine {
  return "listTensors" in engine && "readTensor" in engine && "writeTensor" in engine && "stepCount" in engine;
}

/** The trained tensors, in the order of the engine's list. */
export function listTrained(engine: Pick<StatefulEngine, "listTensors">): TrainedTensor[] {
  return engine
    .listTensors()
    .filter((tensor) => tensor.trainable)
    .map(({ name, shape }) => ({ name, shape }));
}
