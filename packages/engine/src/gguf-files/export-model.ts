import { type FileHandle, open } from "node:fs/promises";
import { EngineError } from "@cria/core";
import type { LlamaModel } from "../llama-model.js";
import { loadModel } from "../load-model.js";
import { type GgufHeader, type GgufTensorInfo, readGguf, readTensorBytes } from "./read-gguf.js";
import { findCodec } from "./tensor-codecs.js";
import { countBytes, getType, type TensorType } from "./tensor-types.js";
import { encodeUint32Entry, type PlannedTensor, writeGgufFile } from "./write-gguf-file.js";

export interface ExportModelOptions {
  /** The model's GGUF. */
  base: string;
  /** A LoRA adapter's GGUF, to be added into the weights; without it the model is only quantized. */
  adapter?: string | null;
  output: string;
  /** Matrices become this; null: they stay as they are. */
  quantize?: "q8_0" | null;
}

export interface ExportModelResult {
  /** Tensors that the adapter changed. */
  merged: number;
  /** How many tensors have which type. */
  types: Record<string, number>;
  bytes: number;
}

/** llama_ftype of a file whose matrices are mostly Q8_0. */
const MOSTLY_Q8_0 = 7;

interface Pair {
  /** [inputs, rank] and [rank, outputs], fastest axis first. */
  a: Float32Array;
  b: Float32Array;
  rank: number;
}

/**
 * Writes a model as one GGUF that stock llama.cpp loads: W + (alpha / rank) B A for every weight that the adapter has, all
 * metadata as they were. F32, F16, BF16 and Q8_0 weights keep their type; a changed weight of another quantized type
 * becomes F16, for quantizing it again would lose more than the adapter may hold.
 * @throws EngineError when a file cannot be read or written, or the adapter is not this model's.
 */
export async function exportModel(options: ExportModelOptions): Promise<ExportModelResult> {
  const base = await readGguf(options.base);
  const adapter = options.adapter ? await readAdapter(options.adapter, base) : null;
  const file = await open(options.base);
  const dequantizer = new Dequantizer(options.base);
  try {
    const tensors = base.tensors.map((tensor): PlannedTensor => {
      const pair = adapter?.pairs.get(tensor.name);
      const type = chooseType(tensor, pair !== undefined, options.quantize ?? null);
      const { name, shape } = tensor;
      if (!pair && type === tensor.type) return { name, type, shape, makeBytes: () => readTensorBytes(file, tensor) };
      const makeBytes = async () => {
        const values = await dequantizer.read(file, tensor);
        if (pair) addProduct(values, pair, adapter!.alpha / pair.rank, shape);
        const bytes = Buffer.alloc(countBytes(type, shape));
        findCodec(type.name)!.encode(values, bytes);
        return bytes;
      };
      return { name, type, shape, makeBytes };
    });
    const changed = new Map<string, Buffer>();
    if (options.quantize) {
      changed.set("general.file_type", encodeUint32Entry("general.file_type", MOSTLY_Q8_0));
      changed.set("general.quantization_version", encodeUint32Entry("general.quantization_version", 2));
    }
    await writeGgufFile(options.output, base, changed, tensors);
    const types: Record<string, number> = {};
    for (const { type } of tensors) types[type.name] = (types[type.name] ?? 0) + 1;
    const bytes = tensors.reduce((sum, { type, shape }) => sum + countBytes(type, shape), 0);
    return { merged: adapter?.pairs.size ?? 0, types, bytes };
  } finally {
    await dequantizer.dispose();
    await file.close();
  }
}

function chooseType(tensor: GgufTensorInfo, changed: boolean, quantize: "q8_0" | null): TensorType {
  const simple = findCodec(tensor.type.name) !== undefined;
  const isMatrix = tensor.shape.length === 2 && tensor.shape[0]! % 32 === 0;
  if (quantize && isMatrix && (simple || changed)) return getType(quantize);
  return simple || !changed ? tensor.type : getType("f16");
}

async function readAdapter(path: string, base: GgufHeader): Promise<{ alpha: number; pairs: Map<string, Pair> }> {
  const header = await readGguf(path);
  const kind = header.metadata.get("adapter.type")?.value;
  if (kind !== "lora") throw makeUnfit(path, 'adapter.type "lora"', JSON.stringify(kind) ?? "none");
  const architecture = (of: GgufHeader) => String(of.metadata.get("general.architecture")?.value);
  if (architecture(header) !== architecture(base))
    throw makeUnfit(path, `architecture ${architecture(base)}`, architecture(header));
  const pairs = new Map<string, Pair>();
  const file = await open(path);
  try {
    for (const tensorA of header.tensors.filter(({ name }) => name.endsWith(".lora_a"))) {
      const name = tensorA.name.slice(0, -".lora_a".length);
      const tensorB = header.tensors.find((t) => t.name === `${name}.lora_b`);
      const weight = base.tensors.find((t) => t.name === name);
      if (!tensorB || !weight) throw makeUnfit(path, `${tensorB ? name : `${name}.lora_b`}`, "no such tensor");
      const [inputs, rank] = tensorA.shape as [number, number];
      const shape = [inputs, tensorB.shape[1]!];
      if (tensorB.shape[0] !== rank || shape.some((n, i) => n !== weight.shape[i]))
        throw makeUnfit(path, `${name} [${weight.shape.join(", ")}]`, `[${shape.join(", ")}]`);
      pairs.set(name, { a: await decode(file, tensorA), b: await decode(file, tensorB), rank });
    }
  } finally {
    await file.close();
  }
  const alpha = header.metadata.get("adapter.lora.alpha")?.value;
  return { alpha: Number(alpha ?? 0), pairs };
}

async function decode(file: FileHandle, tensor: GgufTensorInfo): Promise<Float32Array> {
  const codec = findCodec(tensor.type.name);
  if (!codec) throw makeUnfit(tensor.name, "f32, f16, bf16 or q8_0", tensor.type.name);
  const values = new Float32Array(tensor.shape.reduce((product, n) => product * n, 1));
  codec.decode(await readTensorBytes(file, tensor), values);
  return values;
}

/** Values of any tensor; the model is loaded only for types that ggml alone can read. */
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

/** W += scale B A, row by row: W is [inputs, outputs], fastest axis first. */
function addProduct(weight: Float32Array, { a, b, rank }: Pair, scale: number, shape: readonly number[]): void {
  const [inputs, outputs] = shape as [number, number];
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
