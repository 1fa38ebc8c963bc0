/**
 * Forward, backward, clipping and an AdamW step of a policy gradient, compared with PyTorch with the same mathematics
 * written plainly (peers/torch): the same weights dequantized to F32, the same batch, logits of the loss' rows only,
 * the base frozen under LoRA. Loss and gradient norm are compared first. Tokens per second count the batch's tokens,
 * prompt and response, for both, whether or not they are evaluated once for several rows.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadModel } from "@cria/engine";
import { embeddedPolicyPath } from "@cria/models";
import type { BenchmarkOptions } from "../benchmark.js";
import { compareRuns } from "../measure.js";
import { getModelFile } from "../models/index.js";
import { besideTorch, openTorch, type Torch, TorchPeer } from "../peers/torch/torch-peer.js";
import type { Measured, Row } from "../row.js";
import { THREADS } from "../settings.js";
import { makeBatch, policyGradient, toSequences } from "./batch.js";
import { cases, type TrainCase } from "./cases.js";
import { measureMemory } from "./memory.js";

const optimizer = { learningRate: 1e-4, maxGradNorm: 1 };

interface TorchStep {
  loss: number;
  gradNorm: number;
  seconds: number;
}

export async function run(options: BenchmarkOptions): Promise<Measured> {
  const chosen = cases.filter(({ title }) => options.includes(title));
  const torch = chosen.length > 0 ? await openTorch(THREADS, options.log) : null;
  const folder = await mkdtemp(join(tmpdir(), "cria-train-"));
  const rows: Row[] = [];
  try {
    for (const trainCase of chosen) rows.push(...(await measureCase(trainCase, torch, folder, options)));
    rows.push(...(await measureMemory(options)));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return { rows, ...(torch && { peerChecks: [torch.check] }) };
}

async function getPath(model: TrainCase["model"]): Promise<string> {
  return model === "embedded" ? embeddedPolicyPath : await getModelFile(model.name, model.type);
}

async function measureCase(
  trainCase: TrainCase,
  torch: Torch | null,
  folder: string,
  { log }: BenchmarkOptions,
): Promise<Row[]> {
  const { title, trainable, rows, length, sharedPrompt } = trainCase;
  const path = await getPath(trainCase.model);
  const lora = trainable === "lora" ? { rank: 16, alpha: 32 } : null;
  await using model = await loadModel({
    path,
    threads: THREADS,
    lora,
    trainable,
    contextSize: 64,
    maxSequences: 1,
  });
  const batch = makeBatch(rows, length, model.info.vocabSize, sharedPrompt);
  const sequences = toSequences(batch);
  // B is zero in a new adapter and then hides A's gradient: one step at a high rate moves it.
  if (lora) await model.train(sequences, policyGradient, { ...optimizer, learningRate: 1e-2 });
  const peer = torch && new TorchPeer(torch, "train_peer.py");
  try {
    if (peer) {
      const adapter = join(folder, "adapter.gguf");
      if (lora) await model.saveAdapter(adapter);
      await peer.ask({ do: "load", path, adapter: lora ? adapter : null, threads: THREADS });
      await checkGradient(model, sequences, batch, peer, trainCase, log);
    }
    const tokens = rows * length;
    const ours = async () => {
      const started = performance.now();
      await model.train(sequences, policyGradient, optimizer);
      return (tokens / (performance.now() - started)) * 1e3;
    };
    const theirs = async () => tokens / (await peer!.ask<TorchStep>({ do: "step", ...batch, apply: true })).seconds;
    // Large cases are warm from the check.
    const isLarge = tokens * model.info.parameterCount > 2e10;
    const figures = await compareRuns<"ours" | "torch">(
      peer ? { ours, torch: theirs } : ({ ours } as Record<"ours" | "torch", () => Promise<number>>),
      { warmUp: isLarge ? 0 : 3, rounds: isLarge ? 5 : 15 },
    );
    const row: Row = {
      case: title,
      metric: "tokens per second of forward, backward and step, median",
      ours: figures.ours.median,
      ...besideTorch(torch, figures.torch?.median),
      target: peer ? "at least 1.5 times PyTorch's" : null,
      met: peer ? figures.ours.median >= 1.5 * figures.torch.median : null,
    };
    log(`${title}: ${row.ours.toFixed(0)} tokens/s${peer ? `, PyTorch ${figures.torch.median.toFixed(0)}` : ""}`);
    if (!peer || sharedPrompt) return [row];
    // Only the products of a plain evaluation count, not elementwise work and attention's softmax. Integer products may
    // exceed the F32 rate.
    const { peakGflops } = torch!.check;
    const shareOf = (speed: number) => (countProducts(model.info, trainCase) * speed) / tokens / (peakGflops * 1e9);
    const share: Row = {
      case: title,
      metric: "products' floating-point operations per second, share of the machine's F32 multiply-adds",
      ours: shareOf(figures.ours.median),
      ...besideTorch(torch, shareOf(figures.torch.median)),
      target: null,
      met: null,
    };
    return [row, share];
  } finally {
    peer?.close();
  }
}

/** The same loss and gradient norm, as near as the base's type allows: ours rounds activations as llama.cpp decodes. */
async function checkGradient(
  model: Awaited<ReturnType<typeof loadModel>>,
  sequences: ReturnType<typeof toSequences>,
  batch: ReturnType<typeof makeBatch>,
  peer: TorchPeer,
  { title, model: file }: TrainCase,
  log: (text: string) => void,
): Promise<void> {
  const expected = await peer.ask<TorchStep>({ do: "step", ...batch, apply: false });
  // A step of no length gives the norm and leaves the weights.
  const { loss, gradNorm } = await model.train(sequences, policyGradient, { ...optimizer, learningRate: 0 });
  const tolerance = file === "embedded" ? 1e-3 : file.type === "F16" ? 5e-3 : 3e-2;
  const error = (a: number, b: number) => Math.abs(a - b) / Math.abs(b);
  log(
    `${title}: loss ${loss.toFixed(5)} / ${expected.loss.toFixed(5)}, gradient norm ${gradNorm.toFixed(5)} / ${expected.gradNorm.toFixed(5)}`,
  );
  if (error(loss, expected.loss) > tolerance || error(gradNorm, expected.gradNorm) > tolerance)
    throw new Error(`${title}: loss or gradient norm differ from PyTorch's by more than ${tolerance}`);
}

/**
 * Operations of the matrix products of one step: 2 a multiply-add; backward by inputs, and by weights where they are
 * trained.
 */
function countProducts(
  info: Awaited<ReturnType<typeof loadModel>>["info"],
  { rows, length, trainable }: TrainCase,
): number {
  const { vocabSize, embeddingSize, parameterCount, layerCount, headCount, headSize } = info;
  const tokens = rows * length;
  const head = vocabSize * embeddingSize;
  const passes = trainable === "full" ? 3 : 2;
  const linear = 2 * passes * ((parameterCount - head) * tokens + head * (tokens / 2));
  // Scores and values forward, their four gradients backward, over the causal half.
  const attention = 3 * 2 * layerCount * headCount * headSize * length * tokens;
  return linear + attention;
}
