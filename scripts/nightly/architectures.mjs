// The table of architectures and types of weights: how far scores, gradients and answers of tiny random models are from
// others' code. Writes architectures.json and architectures.md next to this file; fails where a difference is larger
// than the tests allow, or where stock llama.cpp says other tokens. A few minutes:
//   node --conditions=cria-source --import tsx scripts/nightly/architectures.mjs [--only qwen35]
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { composePolicyLoss, defaultPolicyLoss } from "../../packages/algorithms/src/index.ts";
import { exportModel } from "../../packages/engine/src/index.ts";
import {
  compareWithFloats,
  fillAdapter,
  listReferenceTargets,
  makeReferenceBatch,
  readTorchReference,
  TinyModels,
  textArchitectures,
} from "../../packages/engine/src/testing/index.ts";
import { describeRun, root, writeReport } from "./learning.mjs";

const { values } = parseArgs({ options: { only: { type: "string" } } });
const stock = createRequire(join(root, "models", "package.json")).resolve("node-llama-cpp");
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(stock));

const TYPES = ["f16", "bf16", "q8_0", "q4_0", "mxfp4"];
const TOKENS = 12;
const prompt = [72, 101, 108, 108, 111, 44, 32, 119, 111, 114];
const folder = join(root, "packages", "engine", "fixtures", "torch");
const loss = composePolicyLoss({ ...defaultPolicyLoss, entropyCoeff: 0.02, kl: { coefficient: 0.01, type: "k3" } });
const models = new TinyModels();

/** Compares with float64 PyTorch: the largest difference of a logprob, and the gradients' relative distance. */
async function compareWithTorch(architecture) {
  const reference = readTorchReference(folder, architecture);
  const { path, batch } = reference;
  const full = await models.load({}, { path, trainable: "full" });
  const scores = await full.score(batch);
  const logprob = Math.max(
    ...scores.flatMap(({ logprobs }, i) => [...logprobs].map((x, t) => Math.abs(x - batch[i].logprobs["1.0"][t]))),
  );
  const targets = listReferenceTargets(reference);
  const lora = await models.load({}, { path, lora: { rank: 4, alpha: 8, targets } });
  for (const [name, tensor] of Object.entries(reference.lora.initial))
    await lora.writeTensor(name, Float32Array.from(tensor));
  return {
    logprob,
    lora: await compareGradients(lora, reference, reference.lora.gradients),
    full: await compareGradients(full, reference, reference.full.gradients),
  };
}

async function compareGradients(model, reference, gradients) {
  await model.train(makeReferenceBatch(reference), loss, null, { temperature: reference.settings.temperature });
  let [apart, whole] = [0, 0];
  for (const [name, expected] of Object.entries(gradients)) {
    const found = await model.readTensor(name, "gradient");
    apart += expected.reduce((sum, x, i) => sum + (x - found[i]) ** 2, 0);
    whole += expected.reduce((sum, x) => sum + x * x, 0);
  }
  await model.dispose();
  return Math.sqrt(apart / whole);
}

/** Number of greedy tokens that are stock llama.cpp's: untrained, with an adapter, and with it merged. */
async function compareWithStock(llama, tiny) {
  const path = await models.write(tiny);
  const ours = await models.load({}, { path, lora: { rank: 4, alpha: 8 } });
  const speak = async () => {
    const sequence = ours.createSequence();
    const { tokenIds } = await sequence.generate(prompt, { maxTokens: TOKENS, temperature: 0, stopTokens: [] });
    sequence.dispose();
    return [...tokenIds];
  };
  const untrained = await speak();
  await fillAdapter(ours);
  const adapted = await speak();
  const [adapter, merged] = [join(models.folder, "adapter.gguf"), join(models.folder, "merged.gguf")];
  await ours.saveAdapter(adapter);
  await exportModel({ base: path, adapter, output: merged });
  await ours.dispose();
  const speakStock = async (modelPath, lora) => {
    const model = await llama.loadModel({ modelPath });
    const context = await model.createContext({ contextSize: 256, threads: 1, lora });
    const tokens = [];
    for await (const token of context.getSequence().evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
      tokens.push(token);
      if (tokens.length === TOKENS) break;
    }
    await context.dispose();
    await model.dispose();
    return tokens;
  };
  const count = (a, b) => a.findIndex((token, i) => token !== b[i]);
  const equal = (a, b) => (count(a, b) < 0 ? TOKENS : count(a, b));
  return {
    generate: equal(untrained, await speakStock(path)),
    adapter: equal(adapted, await speakStock(path, { adapters: [{ filePath: adapter, scale: 1 }] })),
    merged: tiny.type === undefined ? equal(adapted, await speakStock(merged)) : null,
  };
}

const architectures = textArchitectures.filter((name) => values.only === undefined || values.only === name);
const rows = [];
const misses = [];
const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 1 });
for (const architecture of architectures) {
  const tiny = { architecture, embedding: 64, feedForward: 64, embeddingScale: 0.3 };
  const floats = { ...(await compareWithTorch(architecture)), ...(await compareWithStock(llama, tiny)) };
  rows.push({ architecture, type: "f32", ...floats });
  if (floats.logprob > 1e-4 || floats.lora > 2e-4 || floats.full > 2e-4)
    misses.push(`${architecture}: ${JSON.stringify(floats)}`);
  for (const type of TYPES) {
    const { logprob, gradient } = await compareWithFloats(models, { ...tiny, type });
    rows.push({ architecture, type, logprob, lora: gradient, ...(await compareWithStock(llama, { ...tiny, type })) });
  }
  console.log(
    rows
      .slice(-1 - TYPES.length)
      .map((row) => JSON.stringify(row))
      .join("\n"),
  );
}
await llama.dispose();
await models.cleanUp();

const small = (x) => (x === undefined || x === null ? "" : x.toExponential(1));
const cells = ({ architecture, type, logprob, lora, full, generate, adapter, merged }) =>
  [
    architecture,
    type.toUpperCase(),
    small(logprob),
    small(lora),
    small(full),
    `${generate} of ${TOKENS}`,
    `${adapter} of ${TOKENS}`,
    merged === null ? "" : `${merged} of ${TOKENS}`,
  ].join(" | ");
const run = describeRun();
const text = `# Architectures and types

Tiny random models of each architecture that trains. ${run.date}, ${run.commit}, ${run.cpu}.

- F32: the largest difference of a logprob (nats) and the relative distance of gradients from float64 PyTorch, whose formulas
  agree with transformers' class of the family (but for llama, qwen2 and qwen3, which have none of their own there).
- Other types: from the same weights in F32. The difference is that of activations, which products round. Random weights enlarge it,
  those of qwen35 the most: its layers norm what a state gives, however small that is. F32's error is enlarged as much. In qwen3moe and
  gpt-oss a rounded activation may also change which of two nearly equal experts a token chooses, or move a gate over its clamp.
- Greedy tokens that stock llama.cpp says too, before the first other one: it keeps keys and values in F16, rounds GELU to F16, and adds an
  adapter to quantized products as we do. Two tokens may be closer to each other than that (those of gpt-oss in MXFP4 are 0.005 nats apart).
  Merged: the adapter within the weights.

| architecture | type | logprob | LoRA gradients | full gradients | tokens: generated | with an adapter | merged |
| --- | --- | --- | --- | --- | --- | --- | --- |
${rows.map((row) => `| ${cells(row)} |`).join("\n")}

Again: \`node --conditions=cria-source --import tsx scripts/nightly/architectures.mjs\`.
`;
if (values.only === undefined) {
  writeFileSync(join(import.meta.dirname, "architectures.md"), text);
  writeReport("architectures.json", { ...run, rows, misses });
} else if (misses.length > 0) process.exitCode = 1;
