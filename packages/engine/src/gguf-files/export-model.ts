import { type FileHandle, open, rm } from "node:fs/promises";
import { EngineError } from "@cria/core";
import type { LlamaModel } from "../llama-model.js";
import { loadModel } from "../load-model.js";
import { checkQuantizeType, quantizeModel } from "./quantize-model.js";
import { type GgufHeader, type GgufTensorInfo, readGguf, readTensorBytes } from "./read-gguf.js";
import { findCodec } from "./tensor-codecs.js";
import { countBytes, getType } from "./tensor-types.js";
import { type LazyGgufTensor, writeGguf } from "./write-gguf.js";

export interface ExportModelOptions {
  /** Path of the model's GGUF. */
  base: string;
  /** Path of a LoRA adapter's GGUF to merge into the weights; without it the model is only quantized. */
  adapter?: string | null;
  output: string;
  /** One of `listQuantizeTypes()`; null: tensors keep their types. */
  quantize?: string | null;
  /** Threads for quantizing. Default: all cores. */
  threads?: number;
}

export interface ExportModelResult {
  /** Number of tensors that the adapter changed. */
  merged: number;
  /** Number of tensors by type. */
  types: Record<string, number>;
  bytes: number;
}

interface Pair {
  /** [inputs, rank] and [rank, outputs], fastest axis first; of experts one after the other. */
  a: Float32Array;
  b: Float32Array;
  /** Factor of their product. */
  scale: number;
}

/**
 * Writes a model as one GGUF that stock llama.cpp loads: W + (alpha / rank) B A for every weight of the adapter, with
 * unchanged metadata. F32, F16, BF16 and Q8_0 weights keep their type; a changed weight of another quantized type
 * becomes F16, because quantizing it again could lose more than the adapter adds. With `quantize` the sums are
 * quantized from F32.
 * @throws ConfigError for an unknown type; EngineError when a file cannot be read or written, or the adapter belongs to
 * another model.
 */
export async function exportModel(options: ExportModelOptions): Promise<ExportModelResult> {
  const { base, adapter = null, output, quantize = null, threads } = options;
  if (quantize === null)
    return { merged: await mergeAdapter(base, adapter, output, null), ...(await countTypes(output)) };
  checkQuantizeType(quantize);
  if (adapter === null) {
    await quantizeModel({ input: base, output, type: quantize, threads });
    return { merged: 0, ...(await countTypes(output)) };
  }
  const whole = `${output}.${process.pid}.merged`;
  try {
    const merged = await mergeAdapter(base, adapter, whole, "f32");
    await quantizeModel({ input: whole, output, type: quantize, threads });
    return { merged, ...(await countTypes(output)) };
  } finally {
    await rm(whole, { force: true }).catch(() => undefined);
  }
}

async function countTypes(path: string): Promise<Pick<ExportModelResult, "types" | "bytes">> {
  const { tensors } = await readGguf(path);
  const types: Record<string, number> = {};
  for (const { type } of tensors) types[type.name] = (types[type.name] ?? 0) + 1;
  return { types, bytes: tensors.reduce((sum, tensor) => sum + tensor.bytes, 0) };
}

/**
 * @param changedType type of the weights that the adapter changes; null: their own type, or F16 where it cannot be
 * written here.
 * @returns the number of those weights.
 */
async function mergeAdapter(
  path: string,
  adapterPath: string | null,
  output: string,
  changedType: "f32" | null,
): Promise<number> {
  const base = await readGguf(path);
  const pairs = adapterPath ? await readAdapter(adapterPath, base) : new Map<string, Pair>();
  const file = await open(path);
  const dequantizer = new Dequantizer(path);
  try {
    const tensors = base.tensors.map((tensor): LazyGgufTensor => {
      const { name, shape } = tensor;
      const pair = pairs.get(name);
      if (!pair) return { name, type: tensor.type.name, shape, makeBytes: () => readTensorBytes(file, tensor) };
      const type = changedType ? getType(changedType) : findCodec(tensor.type.name) ? tensor.type : getType("f16");
      const makeBytes = async () => {
        const values = await dequantizer.read(file, tensor);
        for (let expert = 0; expert < (shape[2] ?? 1); expert++) addProduct(...takeExpert(values, pair, shape, expert));
        const bytes = Buffer.alloc(countBytes(type, shape));
        findCodec(type.name)!.encode(values, bytes);
        return bytes;
      };
      return { name, type: type.name, shape, makeBytes };
    });
    await writeGguf(output, { metadata: Object.fromEntries(base.metadata), tensors });
    return pairs.size;
  } finally {
    await dequantizer.dispose();
    await file.close();
  }
}

async function readAdapter(path: string, base: GgufHeader): Promise<Map<string, Pair>> {
  const header = await readGguf(path);
  const kind = header.metadata.get("adapter.type")?.value;
  if (kind !== "lora") throw makeUnfit(path, 'adapter.type "lora"', JSON.stringify(kind) ?? "none");
  const architecture = (of: GgufHeader) => String(of.metadata.get("general.architecture")?.value);
  if (architecture(header) !== architecture(base))
    throw makeUnfit(path, `architecture ${architecture(base)}`, architecture(header));
  const alpha = Number(header.metadata.get("adapter.lora.alpha")?.value ?? 0);
  const other = header.tensors.find(({ name }) => !/\.lora_[ab]$/.test(name));
  if (other) throw makeUnfit(path, "only LoRA pairs", other.name);
  const pairs = new Map<string, Pair>();
  const file = await open(path);
  try {
    for (const tensorA of header.tensors.filter(({ name }) => name.endsWith(".lora_a"))) {
      const name = tensorA.name.slice(0, -".lora_a".length);
      const tensorB = header.tensors.find((t) => t.name === `${name}.lora_b`);
      const weight = base.tensors.find((t) => t.name === name);
      if (!tensorB || !weight) throw makeUnfit(path, `${tensorB ? name : `${name}.lora_b`}`, "no such tensor");
      // ggml leaves out axes of 1 at the end. The third counts experts.
      const [inputs, rank = 1, experts = 1] = tensorA.shape as [number, number?, number?];
      const shape = [inputs, tensorB.shape[1]!, ...(experts > 1 ? [experts] : [])];
      const fits = [tensorB, weight].every((tensor) => (tensor.shape[2] ?? 1) === experts);
      if (tensorB.shape[0] !== rank || !fits || shape.some((n, i) => n !== weight.shape[i]))
        throw makeUnfit(path, `${name} [${weight.shape.join(", ")}]`, `[${shape.join(", ")}]`);
      // As in llama.cpp, an alpha of 0 means that the product is added unscaled.
      const scale = alpha === 0 ? 1 : alpha / rank;
      pairs.set(name, { a: await decode(file, tensorA), b: await decode(file, tensorB), scale });
    }
  } finally {
    await file.close();
  }
  return pairs;
}

async function decode(file: FileHandle, tensor: GgufTensorInfo): Promise<Float32Array> {
  const codec = findCodec(tensor.type.name);
  if (!codec) throw makeUnfit(tensor.name, "f32, f16, bf16 or q8_0", tensor.type.name);
  const values = new Float32Array(tensor.shape.reduce((product, n) => product * n, 1));
  codec.decode(await readTensorBytes(file, tensor), values);
  return values;
}

/** Reads values of any tensor. Loads the model only for types that only ggml can read. */
class Dequantizer {
  private model: LlamaModel | null = null;

  constructor(private readonly path: string) {}

  async read(file: FileHandle, tensor: GgufTensorInfo): Promise<Float32Array> {
    if (findCodec(tensor.type.name)) return decode(file, tensor);
    this.model ??= await loadModel({
      path: this.path,
      device: "cpu",
      contextSize: 64,
      maxSequences: 1,
      lora: { rank: 1 },
    });
    return this.model.readTensor(tensor.name);
  }

  async dispose(): Promise<void> {
    await this.model?.dispose();
  }
}

/** An expert's matrix, its pair and its shape; the first expert's are the whole where there is one matrix. */
function takeExpert(
  values: Float32Array,
  { a, b, scale }: Pair,
  [inputs = 1, outputs = 1, experts = 1]: readonly number[],
  expert: number,
): [Float32Array, Pair, [number, number]] {
  const part = (of: Float32Array) => {
    const size = of.length / experts;
    return of.subarray(expert * size, (expert + 1) * size);
  };
  return [part(values), { a: part(a), b: part(b), scale }, [inputs, outputs]];
}

/** W += scale B A, row by row: W is [inputs, outputs], fastest axis first. */
function addProduct(weight: Float32Array, { a, b, scale }: Pair, [inputs, outputs]: [number, number]): void {
  const rank = a.length / inputs;
  const update = new Float64Array(inputs);
  for (let row = 0; row < outputs; row++) {
    update.fill(0);
    for (let r = 0; r < rank; r++) {
      const factor = scale * b[row * rank + r]!;
      if (factor === 0) continue;
      for (let i = 0; i < inputs; i++) update[i]! += factor * a[r * inputs + i]!;
    }
    for (let i = 0; i < inputs; i++) weight[row * inputs + i]! += update[i]!;
  }
}

function makeUnfit(path: string, expected: string, received: string): EngineError {
  return new EngineError("is not an adapter of this model", {
    code: "engine/not-an-adapter",
    subject: path,
    expected,
    received,
    remedy: "use the model that the adapter was trained on",
  });
}
