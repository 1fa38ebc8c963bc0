// Computes Cria's results for one file, on the CPU kernel that CRIA_CPU_KERNEL names, in a separate process, which
// answers a JSON request on standard input by one on standard output.
//   {"command": "scores", "model", "sequences", "adapter"?}      {"logprobs": [[...]]}
//   {"command": "gradients", "model", "sequences", "weights", "trainable": "lora" | "full", "folder"}
//       writes values and gradients of all trained tensors as float32 files, and index.json
//   {"command": "adapter", "model", "sequences", "weights", "folder", "file"}
//       trains an adapter, saves it, and writes its values
//   {"command": "greedy", "model", "prompts", "count"}            {"tokens": [[...]]}
import { text } from "node:stream/consumers";
import { fillAdapter } from "../../../apps/trainer/src/check-model/sample-text.ts";
import { loadModel } from "../../../packages/engine/src/index.ts";
import { writeTensors } from "./write-tensors.mjs";

const lora = { rank: 16, alpha: 32 };

const CONTEXT = 2048;
/** The scale of tests/real-model.test.ts. */
const ADAPTER_SCALE = 0.01;

async function score({ model: path, sequences, threads, adapter = null }) {
  const model = await loadModel({
    path,
    contextSize: CONTEXT,
    maxSequences: 1,
    threads,
    lora: adapter ? { path: adapter } : { rank: 1 },
  });
  const scores = await model.score(sequences.map((tokenIds) => ({ tokenIds })));
  await model.dispose();
  return { logprobs: scores.map(({ logprobs }) => [...logprobs]) };
}

/** Minus the sum of weight times logprob. */
const weighted = ({ logprobs, columns }) => {
  const dLogprobs = new Float32Array(logprobs.length);
  let loss = 0;
  for (let i = 0; i < logprobs.length; i++) {
    loss -= columns.weights[i] * logprobs[i];
    dLogprobs[i] = -columns.weights[i];
  }
  return { loss, dLogprobs };
};

/**
 * Sequences whose tokens have weights; those of weight 0 are ignored.
 * @param {Record<string, any>} given sequences, weights
 */
const toBatch = ({ sequences, weights }) =>
  sequences.map((tokenIds, i) => ({
    tokenIds,
    lossMask: weights[i].map((weight) => (weight === 0 ? 0 : 1)),
    columns: { weights: weights[i] },
  }));

async function differentiate({ model: path, trainable, folder, threads, ...given }) {
  const isLora = trainable === "lora";
  const options = isLora ? { lora } : { trainable };
  const model = await loadModel({ path, contextSize: CONTEXT, maxSequences: 1, threads, ...options });
  if (isLora) await fillAdapter(model, ADAPTER_SCALE);
  const { loss } = await model.train(toBatch(given), weighted, null);
  await writeTensors(model, folder, isLora ? ["gradient", "value"] : ["gradient"]);
  await model.dispose();
  return { loss };
}

/** Four steps towards the batch; saves the adapter as a GGUF, and its values as `differentiate` does. */
async function adapt({ model: path, folder, file, threads, ...given }) {
  const model = await loadModel({ path, contextSize: CONTEXT, maxSequences: 1, threads, lora });
  const batch = toBatch(given);
  for (let step = 0; step < 4; step++) await model.train(batch, weighted, { learningRate: 2e-3, maxGradNorm: 1 });
  await model.saveAdapter(file);
  await writeTensors(model, folder, ["value"]);
  await model.dispose();
  return {};
}

async function speak({ model: path, prompts, count, threads }) {
  const model = await loadModel({ path, contextSize: CONTEXT, maxSequences: prompts.length, threads });
  const answers = prompts.map(async (prompt) => {
    const sequence = model.createSequence();
    const { tokenIds } = await sequence.generate(prompt, { maxTokens: count, temperature: 0, stopTokens: [] });
    return [...tokenIds];
  });
  const tokens = await Promise.all(answers);
  await model.dispose();
  return { tokens };
}

const request = JSON.parse(await text(process.stdin));
const commands = { scores: score, gradients: differentiate, adapter: adapt, greedy: speak };
const answer = await commands[request.command](request);
process.stdout.write(JSON.stringify(answer));
