// Generation, scores, gradients and short trainings of tiny models on Vulkan, beside the CPU's, each in a process of its
// own. Writes vulkan.json and vulkan.md beside this file; fails where Vulkan differs by more than it may. Without a GPU by
// Mesa's driver for CPUs (mesa-vulkan-drivers), whose first run compiles shaders for minutes:
//   GGML_VK_VISIBLE_DEVICES=0 node --conditions=cria-source --import tsx scripts/nightly/vulkan.mjs [--only qwen3]
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { quantizeModel } from "../../packages/engine/src/gguf-files/quantize-model.ts";
import { inspectBackend } from "../../packages/engine/src/index.ts";
import {
  fillAdapter,
  makeTreeBatch,
  TinyModels,
  textArchitectures,
  weightedLogprobs,
} from "../../packages/engine/src/testing/index.ts";
import { describeRun, writeReport } from "./learning.mjs";

const { values } = parseArgs({ options: { only: { type: "string" }, case: { type: "string" } } });

const STEPS = 4;
const TOKENS = 24;
const shapes = {
  f32: {},
  f16: {},
  q8_0: { embedding: 64, feedForward: 96 },
  q4_1: { embedding: 64, feedForward: 96 },
  q4_K: { embedding: 256, headSize: 64, feedForward: 256 },
};
/** The largest difference that is not a finding; of quantized weights beside the CPU's rounded activations. */
const bounds = { f32: 1e-2, f16: 3e-2, q8_0: 0.15, q4_1: 0.15, q4_K: 0.15 };
/** Without F16 arithmetic, F32 weights have the CPU's numbers but for the order of sums. */
const EXACT = 1e-4;

/** Everything that one device computes of a model. */
async function compute(models, path, device, trainable) {
  const how = trainable === "full" ? { trainable } : { lora: { rank: 4, alpha: 8 } };
  const model = await models.load({}, { path, contextSize: 64, maxSequences: 2, device, ...how });
  if (trainable === "lora") await fillAdapter(model);
  const batch = makeTreeBatch();
  const scores = await model.score(batch);
  const sequence = model.createSequence();
  const decoded = await sequence.generate(Int32Array.of(72, 101, 108, 108, 111), { maxTokens: TOKENS, temperature: 0 });
  sequence.dispose();
  await model.train(batch, weightedLogprobs, null);
  const gradients = {};
  for (const { name, trainable: isTrained } of model.listTensors())
    if (isTrained) gradients[name] = await model.readTensor(name, "gradient");
  await model.zeroGradients();
  const losses = [];
  for (let step = 0; step < STEPS; step++)
    losses.push((await model.train(batch, weightedLogprobs, { learningRate: 1e-3 })).loss);
  const said = model.info.device;
  await model.dispose();
  return { device: said, logprobs: scores.flatMap(({ logprobs }) => [...logprobs]), decoded, gradients, losses };
}

const worst = (a, b) => Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i])));

function findWorstGradient(ours, theirs) {
  const apart = Object.entries(theirs).map(([name, wanted]) => {
    const difference = Math.hypot(...wanted.map((x, i) => x - ours[name][i]));
    return { name, error: difference / (Math.hypot(...wanted) || 1) };
  });
  return apart.reduce((a, b) => (b.error > a.error ? b : a));
}

/** One row, in a process of its own: the differences, or the error. */
async function runCase({ architecture, type, trainable }) {
  const models = new TinyModels();
  try {
    const path = await models.write({ architecture, type, embeddingScale: 0.3, ...shapes[type] });
    const vulkan = await compute(models, path, "vulkan", trainable);
    const cpu = await compute(models, path, "cpu", trainable);
    const same = cpu.decoded.tokenIds.findIndex((token, t) => token !== vulkan.decoded.tokenIds[t]);
    const equalTokens = same < 0 ? cpu.decoded.tokenIds.length : same;
    const both = (result) => result.decoded.logprobs.slice(0, equalTokens);
    const row = {
      device: vulkan.device,
      scores: worst(vulkan.logprobs, cpu.logprobs),
      decode: worst(both(vulkan), both(cpu)),
      tokens: `${equalTokens} of ${cpu.decoded.tokenIds.length}`,
      gradient: findWorstGradient(vulkan.gradients, cpu.gradients),
      loss: worst(vulkan.losses, cpu.losses) / Math.max(...cpu.losses.map(Math.abs)),
    };
    if (type === "f32" || type === "f16") return row;
    // Over the same weights as F32 no device rounds activations.
    const output = join(models.folder, "as-f32.gguf");
    await quantizeModel({ input: path, output, type: "F32" });
    const floats = await compute(models, output, "cpu", trainable);
    const besideFloats = (given) => findWorstGradient(given.gradients, floats.gradients).error;
    return { ...row, vulkanBesideFloats: besideFloats(vulkan), cpuBesideFloats: besideFloats(cpu) };
  } catch (error) {
    const said = error.message.replaceAll(`${models.folder}/`, "");
    return { error: error.code ? `${error.code}: ${said}` : said };
  } finally {
    await models.cleanUp();
  }
}

if (values.case !== undefined) {
  process.stdout.write(`\n${JSON.stringify(await runCase(JSON.parse(values.case)))}\n`);
  process.exit(0);
}

const dense = ["llama", "qwen2", "qwen3", "gemma3", "smollm3", "granite", "lfm2", "phi3", "mistral3"];
const cases = [
  ...textArchitectures.map((architecture) => ({ architecture, type: "f32", trainable: "full" })),
  ...["llama", "qwen2", "qwen3", "gemma3"].map((architecture) => ({ architecture, type: "f32", trainable: "lora" })),
  ...["llama", "qwen3"].flatMap((architecture) =>
    ["f16", "q8_0", "q4_1", "q4_K"].map((type) => ({ architecture, type, trainable: "lora" })),
  ),
].flatMap((one) => {
  const alone = { ...one, f16: false };
  // F16 arithmetic in shaders, which a GPU has by default.
  return one.architecture === "llama" ? [alone, { ...one, f16: true }] : [alone];
});

const rows = [];
for (const one of cases.filter(({ architecture }) => values.only === undefined || values.only === architecture)) {
  const began = performance.now();
  const program = [...process.execArgv, import.meta.filename, "--case", JSON.stringify(one)];
  const { GGML_VK_DISABLE_F16: _, ...env } = process.env;
  const result = await promisify(execFile)(process.execPath, program, {
    env: one.f16 ? env : { ...env, GGML_VK_DISABLE_F16: "1" },
    timeout: 1_800_000,
  }).then(
    ({ stdout }) => JSON.parse(stdout.trim().split("\n").at(-1) ?? ""),
    (error) => ({
      error: `the process ended: ${error.signal ?? error.code}: ${error.stderr.trim().split("\n").at(-1)}`,
    }),
  );
  rows.push({ ...one, ...result, seconds: Math.round((performance.now() - began) / 1000) });
  console.log(JSON.stringify(rows.at(-1)));
}

const exact = (row) => (row.type === "f32" && !row.f16 ? EXACT : bounds[row.type]);
const misses = rows.flatMap((row) => {
  const name = `${row.architecture}, ${row.type}, ${row.trainable}${row.f16 ? ", F16 arithmetic" : ""}`;
  if (!dense.includes(row.architecture))
    return row.error?.includes("engine/unsupported-architecture") ? [] : [`${name}: is not refused`];
  if (row.error) return [`${name}: ${row.error}`];
  const isNear = row.device === "vulkan" && row.gradient.error <= exact(row) && row.loss <= exact(row);
  return isNear ? [] : [`${name}: gradient ${row.gradient.error} of ${row.gradient.name}, loss ${row.loss}`];
});
const small = (value) => (value === undefined ? "" : value === 0 ? "0" : value.toExponential(1));
const run = { ...describeRun(), device: inspectBackend("vulkan").find(({ name }) => name === "driver")?.found };
const lines = rows.map((row) => {
  const head = `| ${row.architecture} | ${row.type} | ${row.trainable} | ${row.f16 ? "yes" : "no"} |`;
  if (row.error) return `${head} ${row.error.split("\n")[0].replace("model-0.gguf: ", "")} | | | | | | |`;
  return `${head} ${small(row.scores)} | ${small(row.decode)} | ${row.tokens} | ${small(row.gradient.error)} | ${small(row.loss)} | ${small(row.vulkanBesideFloats)} | ${small(row.cpuBesideFloats)} |`;
});
const text = `# Vulkan beside the CPU

Tiny random models. ${run.date}, ${run.commit}, ${run.cpu}, ${run.device}. Scores and decode: the worst token, in nats; tokens: greedy ones that are
equal, of ${TOKENS}; gradient: by tensor, relative to its norm, the worst; loss: of ${STEPS} steps, the worst, relative to the largest. The last two: each device's
gradients beside the CPU's over the same weights as F32, which shows what rounded activations cost. "F16": shaders compute in F16 where they may
(GGML_VK_DISABLE_F16 not set).

| model | weights | trains | F16 | scores | decode | tokens | gradient | loss | Vulkan and F32 | CPU and F32 |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
${lines.join("\n")}

Again: \`GGML_VK_VISIBLE_DEVICES=0 node --conditions=cria-source --import tsx scripts/nightly/vulkan.mjs\`.
`;
if (values.only === undefined) {
  writeFileSync(join(import.meta.dirname, "vulkan.md"), text);
  writeReport("vulkan.json", { ...run, rows, misses });
} else console.log(text, misses);
