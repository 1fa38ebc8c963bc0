// A trained adapter's or model's tensors as files, as oracle.py reads them.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Writes NAME.PART of each trained tensor as float32, and index.json: [{"name", "shape"}].
 * @param parts "value", "gradient"
 */
export async function writeTensors(model, folder, parts) {
  mkdirSync(folder, { recursive: true });
  const tensors = model.listTensors().filter((tensor) => tensor.trainable);
  for (const { name } of tensors)
    for (const part of parts) {
      const { buffer, byteOffset, byteLength } = await model.readTensor(name, part);
      writeFileSync(join(folder, `${name}.${part}`), new Uint8Array(buffer, byteOffset, byteLength));
    }
  writeFileSync(join(folder, "index.json"), JSON.stringify(tensors.map(({ name, shape }) => ({ name, shape }))));
}
