/**
 * The share of the machine's best rates (`peers/machine-peaks.cc`) that each part reaches: decoding one sequence reads
 * every weight for each token, so memory bounds it; decoding 64, scoring and training multiply, so multiply-adds bound
 * them: of F32 for weights in floats, of 8-bit integers for quantized ones, of 16-bit integers where they are trained on.
 * Only the products of weights count as work, not attention, norms, sampling or the optimizer.
 */
import { type GgufTensorInfo, loadModel, readGguf } from "@cria/engine";
import type { BenchmarkOptions } from "../benchmark.js";
import { CriaDecoder } from "../decode/cria-decoder.js";
import { compareRuns } from "../measure.js";
import { getModelFile, type ModelName, type ModelType } from "../models/index.js";
import { measurePeak } from "../peers/machine-peaks.js";
import type { Measured, Row } from "../row.js";
import { THREADS } from "../settings.js";
import { makeBatch, policyGradient, toSequences } from "../train/batch.js";

const MODELS: readonly ModelName[] = ["smollm2-135m", "qwen2.5-0.5b"];
const TYPES: readonly ModelType[] = ["F16", "Q8_0", "Q4_K_M"];
const PEAKS = ["read", "f32", "int8", "int16"] as const;
type Peak = (typeof PEAKS)[number];

const TITLES: Record<Peak, string> = {
  read: "share of the memory's bandwidth",
  f32: "share of the peak of F32 multiply-adds",
  int8: "share of the peak of 8-bit multiply-adds",
  int16: "share of the peak of 16-bit multiply-adds",
};
/** Conversations of a training or scoring pass, and their tokens. */
const [ROWS, LENGTH] = [2, 256];

/** A part of the work: units (bytes, or operations) a second, and the peak that bounds them. */
interface Part {
  name: string;
  bound: Peak;
  rate: number;
}

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  const peaks: Record<Peak, number> = { read: 0, f32: 0, int8: 0, int16: 0 };
  // Anew beside each model: a machine has good and bad minutes.
  const measurePeaks = async () => {
    for (const kind of PEAKS) peaks[kind] = Math.max(peaks[kind], await measurePeak(kind, THREADS, 2));
  };
  const found: (Part & { title: string })[] = [];
  for (const model of MODELS)
    for (const type of TYPES) {
      const title = `${model} ${type}`;
      if (!includes(title)) continue;
      await measurePeaks();
      for (const part of await measureParts(await getModelFile(model, type, log), type)) {
        log(`${title}, ${part.name}: ${(part.rate / 1e9).toFixed(1)} of ${(peaks[part.bound] / 1e9).toFixed(1)} G/s`);
        found.push({ ...part, title });
      }
    }
  if (found.length === 0) return { rows: [] };
  await measurePeaks();
  const inform = (title: string, metric: string, ours: number): Row => ({
    ...{ case: title, metric, ours, peers: {}, target: null, met: null },
  });
  return {
    rows: [
      inform("bytes read from memory", "billions a second, at best", peaks.read / 1e9),
      ...(["f32", "int8", "int16"] as const)
        .filter((kind) => peaks[kind] > 0)
        .map((kind) => inform(`operations, ${kind}`, "billions a second, at best", peaks[kind] / 1e9)),
      ...found
        .filter(({ bound }) => peaks[bound] > 0)
        .map(({ title, name, bound, rate }) => inform(`${title}, ${name}`, TITLES[bound], rate / peaks[bound])),
    ],
  };
}

/** Matrices that a token meets: all, but an embedding that is no head. */
function listMatrices(tensors: readonly GgufTensorInfo[]): { layers: GgufTensorInfo[]; head: GgufTensorInfo } {
  const isMatrix = ({ shape }: GgufTensorInfo) => shape.length === 2;
  const find = (name: string) => tensors.find((tensor) => tensor.name === name);
  return {
    layers: tensors.filter((tensor) => isMatrix(tensor) && tensor.name.startsWith("blk.")),
    head: find("output.weight") ?? find("token_embd.weight")!,
  };
}

const countElements = ({ shape }: GgufTensorInfo) => shape.reduce((product, size) => product * size, 1);

async function measureParts(path: string, type: ModelType): Promise<Part[]> {
  const { layers, head } = listMatrices((await readGguf(path)).tensors);
  const elements = layers.reduce((sum, tensor) => sum + countElements(tensor), 0);
  const bytes = [...layers, head].reduce((sum, tensor) => sum + tensor.bytes, 0);
  const isFloat = type === "F16";
  const decoding = 2 * (elements + countElements(head));

  const decoder = await CriaDecoder.load({
    ...{ path, threads: THREADS, sequences: 64, contextSize: 256, flashAttention: false, deterministic: true },
    prompt: Array.from({ length: 16 }, (_, i) => 100 + i),
  });
  const decode = async (sequences: number, steps: number) => {
    const first = Array.from({ length: sequences }, (_, i) => 200 + i);
    await decoder.prepare(first);
    const { seconds } = await decoder.run(first, steps, 1);
    return (sequences * steps) / seconds;
  };
  const decoded = await compareRuns({ one: () => decode(1, 24), many: () => decode(64, 3) });
  await decoder.dispose();

  await using model = await loadModel({
    ...{ path, threads: THREADS, contextSize: 64, maxSequences: 1, lora: { rank: 16, alpha: 32 } },
  });
  const sequences = toSequences(makeBatch(ROWS, LENGTH, model.info.vocabSize, false));
  const perSecond = async (work: () => Promise<unknown>) => {
    const started = performance.now();
    await work();
    return 1000 / (performance.now() - started);
  };
  const passes = await compareRuns({
    score: () => perSecond(() => model.score(sequences.map(({ tokenIds }) => ({ tokenIds, from: LENGTH / 2 })))),
    train: () => perSecond(() => model.train(sequences, policyGradient, { learningRate: 1e-5, maxGradNorm: 1 })),
  });
  // The head multiplies the rows of the second half.
  const forward = 2 * ROWS * (elements * LENGTH + countElements(head) * (LENGTH / 2));
  return [
    { name: "decode, 1 sequence", bound: "read", rate: bytes * decoded.one.median },
    { name: "decode, 64 sequences", bound: isFloat ? "f32" : "int8", rate: decoding * decoded.many.median },
    { name: `score, ${ROWS} x ${LENGTH}`, bound: isFloat ? "f32" : "int8", rate: forward * passes.score.median },
    // Forward, and backward by inputs: the base is frozen.
    {
      name: `LoRA step, ${ROWS} x ${LENGTH}`,
      bound: isFloat ? "f32" : "int16",
      rate: 2 * forward * passes.train.median,
    },
  ];
}
