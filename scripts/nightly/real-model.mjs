// Compares Cria's results for a published model (SmolLM2-135M-Instruct) with other code: transformers and PyTorch's
// autograd in float64 over the same dequantized weights, and stock llama.cpp. For the original file (Q4_1), and for
// F32, F16, Q8_0 and Q4_K_M made from it; on each kernel that the CPU has. Writes real-model.json and real-model.md
// next to this file; an hour of two cores.
//
//   node scripts/fetch-real-model.mjs --python
//   node --conditions=cria-source --import tsx scripts/nightly/real-model.mjs [--only language,scores,greedy,adapter,gradients,stored] [--types F32,...]
//        [--kernels avx512,...] [--tokens 4000]
//
// Rows of parts that --only leaves out are kept. The exit code is 1 where the model is missing, or a number is above
// its bound.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { StockEval } from "../../benchmarks/peers/stock-eval.ts";
import { getRuntimeInfo, loadModel } from "../../packages/engine/src/index.ts";
import { ChatTemplate, DeltaTokenizer } from "../../packages/tokenizer-delta/src/index.ts";
import { comparePaths } from "../../packages/tokenizer-delta/src/matrix/compare-paths.ts";
import { conversations } from "../../packages/tokenizer-delta/src/matrix/conversations.ts";
import { templateCases } from "../../packages/tokenizer-delta/src/matrix/templates.ts";
import { readBundledTemplate } from "../../packages/tokenizer-delta/src/testing/index.ts";
import { realFolder as folder, getRealFile } from "../real-file.mjs";
import { missingModel, realModel, realPython } from "../real-model.mjs";
import { describeRun } from "./learning.mjs";
import { writeReport } from "./real-model/report.mjs";
import { makeStrings } from "./real-model/strings.mjs";
import { makeChatSequences, makePrompts, makeTextSequences } from "./real-model/texts.mjs";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "language,scores,greedy,adapter,gradients,stored" },
    types: { type: "string", default: "Q4_1,F32,F16,Q8_0,Q4_K_M" },
    kernels: { type: "string", default: getRuntimeInfo().usableCpuKernels.join(",") },
    tokens: { type: "string", default: "4000" },
    // Threads that wait for one another spin: on a busy machine one is the fastest.
    threads: { type: "string", default: "2" },
  },
});
if (missingModel) throw new Error(missingModel);
if (!existsSync(realPython)) throw new Error(`${realPython} is missing: node scripts/fetch-real-model.mjs --python`);

const types = values.types.split(",");
const kernels = values.kernels.split(",");
const isWanted = (part) => values.only.split(",").includes(part);
const result = join(import.meta.dirname, "real-model");
const report = existsSync(`${result}.json`) ? JSON.parse(readFileSync(`${result}.json`, "utf8")) : {};
const log = (line) => console.error(line);
mkdirSync(folder, { recursive: true });

async function ask(command, args, env, request) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(JSON.stringify(request));
  const [answer, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (code !== 0) throw new Error(`${args[0]}: ended with ${code}`);
  return JSON.parse(answer);
}

const script = (name) => join(import.meta.dirname, "real-model", name);
const askPython = (name, request) =>
  ask(realPython, [script(name)], { TQDM_DISABLE: "1", OMP_NUM_THREADS: values.threads }, request);
const askOracle = (request) => askPython("oracle.py", request);
const askOurs = (kernel, request) =>
  ask(
    process.execPath,
    [...process.execArgv, script("ours.mjs")],
    { CRIA_CPU_KERNEL: kernel },
    {
      threads: Number(values.threads),
      ...request,
    },
  );

/** Statistics of differences: mean, 99th percentile and largest, in nats. */
function compare(found, expected) {
  const differences = found.flatMap((row, i) => row.slice(1).map((value, t) => Math.abs(value - expected[i][t + 1])));
  differences.sort((a, b) => a - b);
  const at = (share) => differences[Math.min(differences.length - 1, Math.floor(share * differences.length))];
  return {
    tokens: differences.length,
    mean: differences.reduce((sum, value) => sum + value, 0) / differences.length,
    p99: at(0.99),
    max: differences.at(-1),
  };
}

/** Replaces a part's rows that were measured again. */
function keep(part, row, same) {
  const { date, commit, cpu } = describeRun();
  report[part] = [
    ...(report[part] ?? []).filter((old) => !same(old)),
    { ...row, measured: `${date}, ${commit}, ${cpu}` },
  ];
  save();
}

function save() {
  writeFileSync(`${result}.json`, `${JSON.stringify(report, null, 1)}\n`);
  writeReport(`${result}.md`, report);
}

/** The matrix's conversations, and one of twenty turns with calls. */
const longer = {
  ...conversations,
  "twenty turns": {
    tools: conversations["one call"].tools,
    messages: [
      ...conversations["one call"].messages.slice(0, 1),
      ...Array.from({ length: 20 }, () => conversations["one call"].messages.slice(1)).flat(),
    ],
  },
};
const vocabulary = await loadModel({ path: realModel.path, contextSize: 64, maxSequences: 1 });
const texts = { text: makeTextSequences(vocabulary, Number(values.tokens)), chat: makeChatSequences(vocabulary) };
const prompts = makePrompts(vocabulary);
await vocabulary.dispose();
const sequences = [...texts.text, ...texts.chat];
report.machine = { cpu: cpus()[0].model.trim(), kernels: getRuntimeInfo().usableCpuKernels, node: process.version };
report.model = { file: realModel.file, sha256: realModel.sha256 };

async function measureScores(type) {
  const path = await getRealFile(type);
  const oracle = await askOracle({ command: "scores", model: path, sequences });
  report.versions = { torch: oracle.torch, transformers: oracle.transformers };
  report.channels = oracle.channels;
  const count = texts.text.length;
  const byKind = (found) => ({
    text: compare(found.slice(0, count), oracle.logprobs.slice(0, count)),
    chat: compare(found.slice(count), oracle.logprobs.slice(count)),
  });
  const add = (who, found) => {
    const row = { type, who, ...byKind(found) };
    keep("scores", row, (old) => old.type === type && old.who === who);
    log(`${type} ${who}: mean ${row.text.mean.toExponential(2)} nats (text), ${row.chat.mean.toExponential(2)} (chat)`);
  };
  for (const kvType of /** @type {const} */ (["f32", "f16"])) {
    const stock = await StockEval.start({ path, threads: Number(values.threads), contextSize: 2048, kvType }, log);
    const found = [];
    for (const ids of sequences) found.push(await stock.score(ids));
    await stock.dispose();
    add(`stock llama.cpp, ${kvType.toUpperCase()} KV`, found);
  }
  for (const kernel of kernels) {
    const { logprobs } = await askOurs(kernel, { command: "scores", model: path, sequences });
    add(`Cria, ${kernel}`, logprobs);
  }
}

/** One batch of conversations: every second token has a weight, of both signs, regardless of its role. */
async function measureGradients(type, trainable) {
  const path = await getRealFile(type);
  const batch = texts.chat.slice(0, 3);
  const total = batch.reduce((sum, ids) => sum + ids.length, 0);
  const weights = batch.map((ids, i) =>
    ids.map((_, t) => (t === 0 || t % 2 === 0 ? 0 : ((t + i) % 3 === 0 ? -1 : 1) / total)),
  );
  for (const kernel of kernels) {
    const ours = join(folder, "gradients");
    const { loss } = await askOurs(kernel, {
      ...{ command: "gradients", model: path, sequences: batch, weights, trainable, folder: ours },
    });
    const oracle = await askOracle({
      ...{ command: "gradients", model: path, sequences: batch, weights, ours, scale: 2, lora: trainable === "lora" },
    });
    const worst = (key, better) => oracle.tensors.reduce((a, b) => (better(a[key], b[key]) ? b : a));
    const errors = oracle.tensors.map(({ error }) => error).sort((a, b) => a - b);
    const { name: worstTensor, error: worstError } = worst("error", (a, b) => b > a);
    const row = {
      ...{ type, trainable, kernel, loss: Math.abs(loss / oracle.loss - 1), tensors: oracle.tensors.length },
      whole: wholeError(oracle.tensors),
      median: errors[Math.floor(errors.length / 2)],
      ...{ worstError, worstTensor, worstCosine: worst("cosine", (a, b) => b < a).cosine },
    };
    keep("gradients", row, (old) => old.type === type && old.trainable === trainable && old.kernel === kernel);
    log(`${type} ${trainable} ${kernel}: ${JSON.stringify(row)}`);
  }
}

/** Error over all tensors as one vector. */
function wholeError(tensors) {
  const square = (value) => value * value;
  const norm = tensors.reduce((sum, tensor) => sum + square(tensor.norm), 0);
  return Math.sqrt(tensors.reduce((sum, { norm, error }) => sum + square(norm * error), 0) / norm);
}

/** An adapter that Cria trained: its logprobs in stock llama.cpp, and merged into transformers' weights. */
async function measureAdapter(type) {
  const path = await getRealFile(type);
  const batch = texts.chat.slice(0, 3);
  const weights = batch.map((ids) => ids.map((_, t) => (t === 0 ? 0 : 1 / (3 * ids.length))));
  const [trained, file] = [join(folder, "adapter"), join(folder, "adapter.gguf")];
  await askOurs(kernels[0], {
    ...{ command: "adapter", model: path, sequences: batch, weights, folder: trained, file },
  });
  const asked = [texts.text[0].slice(0, 500), ...texts.chat.slice(2, 5)];
  const ours = await askOurs(kernels[0], { command: "scores", model: path, sequences: asked, adapter: file });
  const base = await askOurs(kernels[0], { command: "scores", model: path, sequences: asked });
  const oracle = await askOracle({ command: "scores", model: path, sequences: asked, adapter: trained, scale: 2 });
  const size = { threads: Number(values.threads), contextSize: 2048 };
  const stock = await StockEval.start({ path, ...size, kvType: "f32", adapter: file }, log);
  const theirs = [];
  for (const ids of asked) theirs.push(await stock.score(ids));
  await stock.dispose();
  const row = {
    ...{ type, kernel: kernels[0] },
    transformers: compare(ours.logprobs, oracle.logprobs),
    stock: compare(ours.logprobs, theirs),
    stockAndTransformers: compare(theirs, oracle.logprobs),
    // The adapter's effect: without one the comparison would prove nothing.
    moved: compare(ours.logprobs, base.logprobs),
  };
  keep("adapter", row, (old) => old.type === type);
  log(`${type} adapter: ${JSON.stringify(row)}`);
}

async function measureGreedy(type) {
  const path = await getRealFile(type);
  const count = 500;
  const stock = await StockEval.start({ path, threads: Number(values.threads), contextSize: 2048, kvType: "f32" }, log);
  const expected = [];
  for (const prompt of prompts) expected.push(await stock.greedy(prompt, count));
  await stock.dispose();
  for (const kernel of kernels) {
    const { tokens } = await askOurs(kernel, { command: "greedy", model: path, prompts, count });
    // After two tokens differ, all later ones do: only the closeness of that tie counts.
    const parted = tokens.flatMap((row, i) => {
      const at = row.findIndex((token, t) => token !== expected[i].tokens[t]);
      return at < 0 ? [] : [{ prompt: i, token: at, margin: expected[i].margins[at] }];
    });
    const row = { type, kernel, prompts: prompts.length, count, equal: prompts.length - parted.length, parted };
    keep("greedy", row, (old) => old.type === type && old.kernel === kernel);
    log(`${type} ${kernel}: ${row.equal} of ${row.prompts} equal for ${count} tokens; ${JSON.stringify(parted)}`);
  }
}

/** Compares tokens, renderings and deltas with other code; the weights do not matter. */
async function measureLanguage() {
  const model = await loadModel({ path: realModel.path, contextSize: 64, maxSequences: 1, threads: 1 });
  const tokenizer = DeltaTokenizer.forModel(model);
  const strings = makeStrings(20_000);
  const theirs = await askPython("language.py", { command: "tokenize", model: realModel.path, texts: strings });
  const differ = (special, expected) =>
    strings.filter((string, i) => [...model.tokenize(string, { special })].join() !== expected[i].join());
  const tokens = { plain: differ(false, theirs.plain), special: differ(true, theirs.special) };
  const lost = strings.filter((string) => model.detokenize(model.tokenize(string), { special: true }) !== string);
  report.tokenizer = {
    ...{ strings: strings.length, tokens: theirs.plain.reduce((sum, ids) => sum + ids.length, 0) },
    ...{ plainDiffers: tokens.plain.length, specialDiffers: tokens.special.length, notRestored: lost.length },
    ...{ rebuiltByTransformersDiffers: theirs.rebuilt },
    examples: [...tokens.plain, ...tokens.special, ...lost].slice(0, 5),
  };
  log(`tokenizer: ${JSON.stringify(report.tokenizer)}`);

  const { chatTemplate } = model;
  if (chatTemplate === null) throw new Error(`${realModel.file} has no chat template`);
  const own = new ChatTemplate(chatTemplate, { bos_token: "<|im_start|>", eos_token: "<|im_end|>" });
  const others = templateCases.filter(({ template }) => template !== "cria-tiny");
  const templates = [
    { name: "SmolLM2-135M-Instruct", source: chatTemplate, template: own, kwargs: {} },
    ...others.map(({ template: name, bos = "", eos = "", kwargs = {} }) => {
      const source = readBundledTemplate(name);
      return { name, source, template: new ChatTemplate(source, { bos_token: bos, eos_token: eos }), kwargs };
    }),
  ];
  const cases = templates.flatMap(({ name, source, template, kwargs }) =>
    Object.entries(longer).flatMap(([title, { messages, tools }]) =>
      [false, true].map((prompt) => {
        const options = { tools, addGenerationPrompt: prompt, kwargs };
        let text = null;
        /** @type {Record<string, any> | null} */
        let variables = null;
        try {
          variables = template.makeVariables(messages, options);
          text = template.render(messages, options);
        } catch {
          // The template refuses this conversation: it must there, too.
        }
        return { name, title, source, prompt, text, variables };
      }),
    ),
  );
  const asked = cases.flatMap(({ variables, ...one }) => (variables === null ? [] : [{ ...one, variables }]));
  const { texts, errors } = await askPython("language.py", {
    command: "render",
    cases: asked.map(
      ({ source, prompt, variables: { messages, tools = [], add_generation_prompt: _, ...variables } }) => ({
        ...{ template: source, messages, tools, prompt, variables },
      }),
    ),
  });
  const parted = new Map();
  for (const [i, { name, text }] of asked.entries()) {
    if (text === texts[i]) continue;
    const row = parted.get(name) ?? { template: name, renderings: 0, transformers: errors[i] ?? "another text" };
    parted.set(name, { ...row, renderings: row.renderings + 1 });
  }
  report.renderings = {
    ...{ templates: templates.length, conversations: Object.keys(longer).length, renderings: asked.length },
    refusedByBoth: asked.filter(({ text }, i) => text === null && texts[i] === null).length,
    differ: [...parted.values()],
  };
  log(`renderings: ${JSON.stringify(report.renderings)}`);

  const outcomes = {};
  for (const [title, conversation] of Object.entries(longer)) {
    const { outcome } = comparePaths(tokenizer, conversation);
    outcomes[outcome] = [...(outcomes[outcome] ?? []), title];
  }
  report.deltas = outcomes;
  log(`deltas: ${JSON.stringify(outcomes)}`);
  await model.dispose();
  save();
}

/** The values that `npm test` compares with (tests/real-model.test.ts): a few tokens of each kind. */
async function storeValues() {
  const pieces = [texts.text[0].slice(0, 96), texts.chat[0].slice(0, 192)];
  const weights = pieces.map((ids) => ids.map((_, t) => (t % 2 === 1 ? 1 : 0)));
  const strings = makeStrings(150, 2);
  const tokens = await askPython("language.py", { command: "tokenize", model: realModel.path, texts: strings });
  const { logprobs, ...versions } = await askOracle({ command: "scores", model: realModel.path, sequences: pieces });
  const ours = join(folder, "gradients");
  const request = { model: realModel.path, sequences: pieces, weights };
  await askOurs(kernels[0], { command: "gradients", ...request, trainable: "lora", folder: ours });
  const { tensors } = await askOracle({ command: "gradients", ...request, ours, scale: 2, lora: true });
  const names = ["blk.0.attn_q", "blk.9.attn_v", "blk.15.ffn_down", "blk.22.ffn_gate", "blk.29.attn_output"];
  const isKept = ({ name }) => names.some((tensor) => name.startsWith(`${tensor}.`));
  const stock = await StockEval.start({ path: realModel.path, threads: 1, contextSize: 1024, kvType: "f32" }, log);
  const greedy = [];
  for (const prompt of prompts.slice(0, 2)) greedy.push({ prompt, ...(await stock.greedy(prompt, 24)) });
  await stock.dispose();
  const round = (list) => list.map((value) => Number(value.toPrecision(7)));
  const values = {
    versions: { torch: versions.torch, transformers: versions.transformers },
    scores: pieces.map((tokenIds, i) => ({ tokenIds, logprobs: round(logprobs[i]) })),
    gradients: { weights, tensors: tensors.filter(isKept).map(({ name, first }) => ({ name, first: round(first) })) },
    strings: strings.map((text, i) => ({ text, plain: tokens.plain[i], special: tokens.special[i] })),
    greedy: greedy.map(({ margins, ...answer }) => ({ ...answer, margins: round(margins) })),
  };
  writeFileSync(
    join(import.meta.dirname, "..", "..", "tests", "fixtures", "real-model.json"),
    `${JSON.stringify(values)}\n`,
  );
}

if (isWanted("stored")) await storeValues();
if (isWanted("language")) await measureLanguage();
for (const type of types) if (isWanted("scores")) await measureScores(type);
for (const type of types) if (isWanted("greedy")) await measureGreedy(type);
for (const type of types) if (isWanted("adapter")) await measureAdapter(type);
for (const type of types) {
  if (!isWanted("gradients")) continue;
  await measureGradients(type, "lora");
  // Weights of other types do not train.
  if (type === "F32") await measureGradients(type, "full");
}
save();
