// The table of architectures and types of weights: how far scores, gradients and answers of tiny random models are from
// others' code. Writes architectures.json and architectures.md next to this file; fails where a difference is larger
// than the tests allow, or where stock llama.cpp says another token that is not nearly as likely, by the margin of
// `cria check-model`. Half an hour:
//   node --conditions=cria-source --import tsx scripts/nightly/architectures.mjs [--only qwen35]
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { findBound } from "../../apps/trainer/src/check-model/checks/decode.ts";
import { decodeGreedily, findParting, NEAR } from "../../apps/trainer/src/check-model/checks/stock.ts";
import { composePolicyLoss, defaultPolicyLoss } from "../../packages/algorithms/src/index.ts";
import { exportModel, writeGguf } from "../../packages/engine/src/index.ts";
import {
  compareWithFloats,
  describeTinyModel,
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
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(stock).href);

const narrow = { embedding: 64, feedForward: 64, embeddingScale: 0.3 };
/** For types whose blocks have 256 weights; logits are as large as those of the narrow ones. */
const wide = { embedding: 256, headSize: 64, feedForward: 256, embeddingScale: 0.15 };
const shapes = {
  ...Object.fromEntries(["f16", "bf16", "q8_0", "q4_0", "iq4_nl", "mxfp4"].map((type) => [type, narrow])),
  ...Object.fromEntries(["q4_K", "q5_K", "q6_K", "iq4_xs", "tq2_0"].map((type) => [type, wide])),
};
/** Models with images whose language model is another architecture, with places of a row and a column for images. */
const twins = {
  qwen2vl: { of: "qwen2", headSize: 8, embeddingScale: 0.7 },
  // Sections that give each of the head's 8 pairs of dimensions a position. Of published ones llama.cpp leaves some without.
  qwen3vl: { of: "qwen3", headSize: 16, embeddingScale: 0.2, sections: [3, 3, 2, 0] },
};
const TOKENS = 12;
const prompt = Int32Array.from([72, 101, 108, 108, 111, 44, 32, 119, 111, 114]);
const folder = join(root, "packages", "engine", "fixtures", "torch");
const loss = composePolicyLoss({ ...defaultPolicyLoss, entropyCoeff: 0.02, kl: { coefficient: 0.01, type: "k3" } });
const models = new TinyModels();

/** Distances from float64 PyTorch: the largest difference of a logprob, and the gradients' relative distance. */
async function compareWithTorch(architecture) {
  const reference = readTorchReference(folder, twins[architecture]?.of ?? architecture);
  const { batch } = reference;
  const path = architecture in twins ? await writeTwin(architecture) : reference.path;
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

/** The weights of the fixture (its make-models.mjs) as a file of the other architecture: on texts the two compute the same. */
async function writeTwin(architecture) {
  const { of: _, sections, ...shape } = twins[architecture];
  const sizes = { embedding: 32, heads: 4, kvHeads: 2, layers: 2, feedForward: 48 };
  const file = describeTinyModel({ architecture, ...sizes, ...shape, seed: 3 });
  if (sections) file.metadata[`${architecture}.rope.dimension_sections`].value = sections;
  const path = join(models.folder, `${architecture}-twin.gguf`);
  await writeGguf(path, file);
  return path;
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

/** The first greedy token, or none, that is not stock llama.cpp's: untrained, with an adapter, and with it merged. */
async function compareWithStock(llama, tiny) {
  const path = await models.write(tiny);
  const ours = await models.load({}, { path, lora: { rank: 4, alpha: 8 } });
  const margin = NEAR * findBound(ours.info.weightTypes, "cpu");
  const speak = async () => {
    const sequence = ours.createSequence();
    const greedy = await decodeGreedily(sequence, prompt, TOKENS);
    sequence.dispose();
    return greedy;
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
    for await (const token of context.getSequence().evaluate([...prompt], { temperature: 0, yieldEogToken: true })) {
      tokens.push(token);
      if (tokens.length === TOKENS) break;
    }
    await context.dispose();
    await model.dispose();
    return tokens;
  };
  return {
    margin,
    generate: findParting(untrained, await speakStock(path)),
    adapter: findParting(adapted, await speakStock(path, { adapters: [{ filePath: adapter, scale: 1 }] })),
    merged: findParting(adapted, await speakStock(merged)),
  };
}

const tokenColumns = ["generate", "adapter", "merged"];

/** The misses of one row. */
function listMisses({ architecture, type, logprob, lora, full, margin, ...partings }) {
  const isFloat = type === "f32";
  return [
    ...(isFloat && logprob > 1e-4 ? [`a logprob is ${logprob} nats away`] : []),
    ...(isFloat && Math.max(lora, full) > 2e-4 ? [`gradients are ${lora}, ${full} away`] : []),
    ...tokenColumns
      .filter((column) => partings[column]?.gap > margin)
      .map(
        (column) =>
          `${column}: after ${partings[column].at} tokens another one, ${partings[column].gap} nats less likely`,
      ),
  ].map((problem) => `${architecture}, ${type}: ${problem}`);
}

const all = textArchitectures.flatMap((name) => [name, ...(name === "qwen3" ? Object.keys(twins) : [])]);
const rows = [];
const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 1 });
for (const architecture of all.filter((name) => values.only === undefined || values.only === name)) {
  const tiny = { architecture, ...narrow };
  rows.push({
    ...{ architecture, type: "f32", ...(await compareWithTorch(architecture)) },
    ...(await compareWithStock(llama, tiny)),
  });
  console.log(JSON.stringify(rows.at(-1)));
  for (const [type, shape] of Object.entries(shapes)) {
    const typed = /** @type {import("../../packages/engine/src/testing/index.ts").TinyModelOptions} */ ({
      architecture,
      ...shape,
      type,
    });
    const { logprob, gradient } = await compareWithFloats(models, await models.write(typed));
    rows.push({ architecture, type, logprob, lora: gradient, full: null, ...(await compareWithStock(llama, typed)) });
    console.log(JSON.stringify(rows.at(-1)));
  }
}
await llama.dispose();
await models.cleanUp();

const misses = rows.flatMap(listMisses);
const small = (x) => (x === null ? "not supported" : x.toExponential(1));
const count = (parting, margin) => {
  if (parting === null) return `${TOKENS} of ${TOKENS}`;
  return `${parting.at} of ${TOKENS}, ${parting.gap <= margin ? "tie" : "**other**"} (${parting.gap.toPrecision(1)})`;
};
const cells = ({ architecture, type, logprob, lora, full, margin, ...partings }) =>
  [
    architecture,
    type.toUpperCase(),
    small(logprob),
    small(lora),
    small(full),
    ...tokenColumns.map((column) => count(partings[column], margin)),
  ].join(" | ");
const run = describeRun();
const text = `# Architectures and types

Tiny random models of each architecture that trains. ${run.date}, ${run.commit}, ${run.cpu}.

- F32: the largest difference of a logprob (nats) and the relative distance of gradients from float64 PyTorch. Its formulas were
  compared with transformers' class of the family: llama's with factors of RoPE; not those of qwen2 (llama's with biases) and qwen3 (qwen3moe's without
  experts). qwen2vl and qwen3vl on texts: beside the numbers of qwen2 and qwen3, with their weights (qwen3vl in sections of 3, 3, 2
  of 8 pairs; with 4, 2, 2 it is 9e-4 nats from qwen3's numbers).
- Other types: from the same weights in F32. The difference is that of activations, which products round. Random weights enlarge it,
  those of qwen35 the most: its layers norm what a state gives, however small that is. F32's error is enlarged as much. In qwen3moe and
  gpt-oss a rounded activation may also change which of two nearly equal experts a token chooses, or move a gate over its clamp. Q4_K, Q5_K, Q6_K,
  IQ4_XS and TQ2_0: rows of 256 weights, else of 64. "Not supported": all weights train in F32 only.
- Greedy tokens that stock llama.cpp says too, before the first other one: it keeps keys and values in F16, rounds GELU to F16, and adds an
  adapter to quantized products as we do. In brackets: how many nats the second likeliest token was behind where the two part. As in \`cria check-model\`,
  up to ${NEAR} times the bound on logprobs (F32: ${NEAR * findBound({ f32: 1 }, "cpu")} nats, F16: ${NEAR * findBound({ f16: 1 }, "cpu")}, others: ${NEAR * findBound({ q8_0: 1 }, "cpu")}) rounding decides, and the two are tied; beyond it this table fails.
  Merged: the adapter within the weights, as \`cria export\` writes them; those of types other than F32, F16, BF16 and Q8_0 become F16.

| architecture | type | logprob | LoRA gradients | full gradients | tokens: generated | with an adapter | merged |
| --- | --- | --- | --- | --- | --- | --- | --- |
${rows.map((row) => `| ${cells(row)} |`).join("\n")}

Again: \`node --conditions=cria-source --import tsx scripts/nightly/architectures.mjs\`.
`;
if (values.only === undefined) {
  writeFileSync(join(import.meta.dirname, "architectures.md"), text);
  writeReport("architectures.json", { ...run, rows, misses });
} else {
  console.log(text, misses);
  if (misses.length > 0) process.exitCode = 1;
}
