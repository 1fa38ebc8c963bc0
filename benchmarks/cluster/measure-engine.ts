/** Job times of one worker, and the coordinator's work with its engine: the 0.5B shape, no bus. */
import { createHash, randomBytes } from "node:crypto";
import type { ShardGradient } from "@cria/core";
import { type LlamaModel, loadModel } from "@cria/engine";
import { median } from "../measure.js";
import { getModelFile } from "../models/index.js";
import { THREADS } from "../settings.js";
import { makeBatch, policyGradient, toSequences } from "../train/batch.js";
import type { MeasuredInputs } from "./inputs.js";
import { takeQuietest } from "./quietest.js";

/** A round of one conversation takes as long as one of many with fewer tokens each. */
const SAMPLED: [conversations: 1 | 8 | 32, tokens: number][] = [
  [1, 48],
  [8, 24],
  [32, 12],
];
const PROMPT = 64;
const HASHED_BYTES = 35_000_000;

/** Medians of the five quietest rounds; two of each kind warm up. */
export async function measureEngine(log: (text: string) => void): Promise<Partial<MeasuredInputs>> {
  await using model = await loadModel({
    path: await getModelFile("qwen2.5-0.5b", "Q8_0", log),
    threads: THREADS,
    lora: { rank: 16, alpha: 32 },
    contextSize: 320,
    maxSequences: 33,
  });
  const measured: Partial<MeasuredInputs> = {};
  for (const [conversations, tokens] of SAMPLED) {
    const rates = await takeQuietest(() => sample(model, conversations, tokens), { log });
    measured[`sampled${conversations}`] = median(rates);
    log(`sampled tokens/s, ${conversations} at once: ${rates.map(Math.round)}`);
  }
  const scored = toSequences(makeBatch(4, 255, model.info.vocabSize, false));
  const scoreRates = await takeQuietest(async () => 1024 / (await time(() => model.score(scored))), { log });
  measured.scored = median(scoreRates);
  log(`scored tokens/s: ${scoreRates.map(Math.round)}`);
  return { ...measured, ...(await measureTraining(model, log)), hash: await measureHash(log) };
}

async function sample(model: LlamaModel, conversations: number, tokens: number): Promise<number> {
  const batch = makeBatch(conversations, PROMPT, model.info.vocabSize, false);
  const sequences = batch.tokens.map(() => model.createSequence());
  try {
    await Promise.all(sequences.map((sequence, i) => sequence.prefill(batch.tokens[i]!)));
    const seconds = await time(() =>
      Promise.all(
        sequences.map((sequence, seed) =>
          sequence.generate([], { maxTokens: tokens, stopTokens: [], temperature: 1, seed }),
        ),
      ),
    );
    return (conversations * tokens) / seconds;
  } finally {
    for (const sequence of sequences) sequence.dispose();
  }
}

/** A micro-batch computed as by a worker, then the coordinator's work: add, hand over, step, read the weights. */
async function measureTraining(model: LlamaModel, log: (text: string) => void): Promise<Partial<MeasuredInputs>> {
  const sequences = toSequences(makeBatch(2, 256, model.info.vocabSize, false));
  const tensors = model.listTensors().filter(({ trainable }) => trainable);
  const weights = tensors.reduce((sum, { shape }) => sum + shape.reduce((product, axis) => product * axis, 1), 0);
  const sum = new Float32Array(weights);
  const takeStep = async () => {
    let job = 0;
    let addition = 0;
    const compute = async (_: unknown, here: () => Promise<ShardGradient>) => {
      const started = performance.now();
      const found = await here();
      job = (performance.now() - started) / 1e3;
      addition = await time(async () => add(sum, found.gradient));
      return found;
    };
    const optimizer = { learningRate: 1e-4, maxGradNorm: 1 };
    const whole = await time(() =>
      model.train(sequences, policyGradient, optimizer, { microBatchTokens: 512, compute }),
    );
    const values: Float32Array[] = [];
    const reading = await time(async () => {
      for (const { name } of tensors) values.push(await model.readTensor(name));
    });
    const writing = await time(async () => {
      for (const [i, { name }] of tensors.entries()) await model.writeTensor(name, values[i]!);
    });
    // The remainder includes planning and the engine's own addition of the one gradient.
    return { job, addition, rest: whole - job - addition, reading, writing };
  };
  const steps = await takeQuietest(takeStep, { log });
  const middle = (pick: (step: (typeof steps)[number]) => number) => median(steps.map(pick));
  log(`${weights} trained weights; gradient jobs, tokens/s: ${steps.map(({ job }) => (512 / job).toFixed(1))}`);
  return {
    trained: middle(({ job }) => 512 / job),
    add: middle(({ addition }) => (addition / weights) * 1e9),
    optimize: middle(({ rest }) => (rest / weights) * 1e9),
    readWeights: middle(({ reading }) => (4 * weights) / reading),
    writeWeights: middle(({ writing }) => (4 * weights) / writing),
  };
}

/** Copies a received gradient out of its message, checks it, and adds it. */
function add(sum: Float32Array, arrived: Float32Array): void {
  const gradient = arrived.slice();
  for (let i = 0; i < sum.length; i++) if (!Number.isFinite(gradient[i])) throw new Error("no finite gradient");
  for (let i = 0; i < sum.length; i++) sum[i]! += gradient[i]!;
}

async function measureHash(log: (text: string) => void): Promise<number> {
  const bytes = randomBytes(HASHED_BYTES);
  const hash = () => time(async () => createHash("sha256").update(bytes).digest());
  return HASHED_BYTES / median(await takeQuietest(hash, { rounds: 9, log }));
}

/** Seconds. */
async function time(run: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await run();
  return (performance.now() - started) / 1e3;
}
