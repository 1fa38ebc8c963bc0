import { ClusterError, type PolicyEngine } from "@cria/core";
import { countElements, isStateful, listTrained, type StatefulEngine } from "@cria/trainer/internal";

/** An engine whose trained tensors can be read and written. */
export type WeightsEngine = PolicyEngine & StatefulEngine;

export const hasWeights = (engine: PolicyEngine): engine is WeightsEngine => isStateful(engine);

const listSizes = (engine: WeightsEngine) =>
  listTrained(engine).map(({ name, shape }) => ({ name, size: countElements(shape) }));

/** The trained tensors in F32, concatenated in the order of the engine's list: adapter, or all weights. */
export async function readWeights(engine: WeightsEngine): Promise<Uint8Array> {
  const tensors = listSizes(engine);
  const values = new Float32Array(tensors.reduce((sum, { size }) => sum + size, 0));
  let start = 0;
  for (const { name, size } of tensors) {
    values.set(await engine.readTensor(name), start);
    start += size;
  }
  return new Uint8Array(values.buffer);
}

/**
 * Writes them into an engine of the same model and config.
 * @throws ClusterError before anything is changed.
 */
export async function writeWeights(engine: WeightsEngine, bytes: Uint8Array): Promise<void> {
  const tensors = listSizes(engine);
  const count = tensors.reduce((sum, { size }) => sum + size, 0);
  if (bytes.byteLength !== 4 * count) {
    throw new ClusterError("are of another model", {
      code: "cluster/other-weights",
      subject: "weights of the policy",
      expected: `${4 * count} bytes, as ${engine.info.path} has trained tensors`,
      received: `${bytes.byteLength} bytes`,
    });
  }
  // A copy, since the bytes may be unaligned. Not by slice, which gives a view of a Buffer.
  const values = new Float32Array(Uint8Array.from(bytes).buffer);
  let start = 0;
  for (const { name, size } of tensors) {
    await engine.writeTensor(name, values.subarray(start, start + size));
    start += size;
  }
}
