// Run by arm64.mjs and windows.mjs on both platforms: everything that the engine computes, once, as JSON.
//
//   node smoke.mjs <model.gguf> <result.json> <threads>
import { rmSync, writeFileSync } from "node:fs";
import { loadModel, quantizeModel } from "../../../packages/engine/dist/index.js";

const [path, output, threads] = process.argv.slice(2);
const text = "The sum of 17 and 25 is 42, and that of 8 and 13 is 21. What is the sum of 39 and 4?";
const common = { contextSize: 256, maxSequences: 4, threads: Number(threads), seed: 1 };

/** loss = -sum of the logprobs, for both passes of a policy gradient. */
const loss = ({ logprobs }) => ({
  loss: -logprobs.reduce((sum, x) => sum + x, 0) / logprobs.length,
  dLogprobs: new Float32Array(logprobs.length).fill(-1 / logprobs.length),
});

async function readTensors(model, part) {
  const tensors = {};
  for (const { name, trainable } of model.listTensors())
    if (trainable) tensors[name] = [...(await model.readTensor(name, part))];
  return tensors;
}

/** Gradients before any step, then five steps of AdamW. */
async function train(model) {
  const tokenIds = model.tokenize(text);
  const batch = [{ tokenIds, lossMask: Array.from(tokenIds, (_, t) => (t > 3 ? 1 : 0)) }];
  const steps = [];
  // A new adapter's B is zero, and so is A's gradient: one step first.
  await model.train(batch, loss, { learningRate: 1e-3 });
  await model.train(batch, loss, null);
  const gradients = await readTensors(model, "gradient");
  await model.zeroGradients();
  for (let i = 0; i < 5; i++) {
    const { loss: value, gradNorm } = await model.train(batch, loss, { learningRate: 1e-3, maxGradNorm: 1 });
    steps.push({ loss: value, gradNorm });
  }
  return { gradients, steps };
}

/** Greedy and sampled tokens with the logprobs of decoding, and score()'s of the same tokens. */
async function generate(model) {
  const prompt = model.tokenize(text);
  const results = [];
  for (const temperature of [0, 1]) {
    const sequence = model.createSequence();
    const { tokenIds, logprobs } = await sequence.generate(prompt, {
      maxTokens: 24,
      temperature,
      seed: 7,
      stopTokens: [],
    });
    const all = [...prompt, ...tokenIds];
    const [scored] = await model.score([{ tokenIds: all, from: prompt.length }]);
    const scores = [...scored.logprobs.slice(prompt.length)];
    results.push({ tokenIds: [...tokenIds], logprobs: [...logprobs], scores });
    sequence.dispose();
  }
  const [score] = await model.score([{ tokenIds: prompt }]);
  return { results, scores: [...score.logprobs] };
}

async function run(file) {
  const model = await loadModel({ ...common, path: file, lora: { rank: 8 } });
  const result = { info: model.info, generated: await generate(model), trained: await train(model) };
  result.after = await generate(model);
  await model.dispose();
  return result;
}

const quantized = `${output}.q8_0.gguf`;
await quantizeModel({ input: path, output: quantized, type: "Q8_0", threads: 1 });
const results = {
  platform: process.platform,
  arch: process.arch,
  node: process.version,
  f32: await run(path),
  q8: await run(quantized),
};
rmSync(quantized);
writeFileSync(output, JSON.stringify(results));
