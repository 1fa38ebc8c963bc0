// Damages the embedded policy's file, and tiny models whose rows divide into the blocks of every type, in 5,000 ways
// and loads, scores, trains and samples with each: every mutant must be refused with an error or work; none may end the
// process or hang. Writes gguf-mutants.json and gguf-mutants.md next to this file. Needs a build; about 8 minutes.
//   node scripts/nightly/gguf-mutants.mjs [how many] [first seed]
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = join(import.meta.dirname, "..", "..");
const original = readFileSync(join(root, "models", "cria-tiny.gguf"));
/** Metadata and tensor descriptions end about here; weights follow. */
const HEADER_BYTES = 19_000;
const HANG_S = 60;

/** Draws integers below a bound; the same for the same seed (mulberry32). */
function makeDraw(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * below);
  };
}

/** Offsets of metadata values: each begins after its key's text and type. */
function findValues(bytes) {
  const places = [];
  for (const key of [
    ...["block_count", "context_length", "embedding_length", "feed_forward_length", "nextn_predict_layers"],
    ...["attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length"],
    ...["attention.layer_norm_rms_epsilon", "rope.freq_base", "rope.dimension_count", "expert_count"],
  ]) {
    const at = bytes.indexOf(`qwen3.${key}`);
    if (at >= 0) places.push(at + `qwen3.${key}`.length + 4);
  }
  for (const key of ["bos_token_id", "eos_token_id", "padding_token_id", "unknown_token_id"]) {
    const at = bytes.indexOf(`tokenizer.ggml.${key}`);
    if (at >= 0) places.push(at + `tokenizer.ggml.${key}`.length + 4);
  }
  return places;
}

const interesting = [0, 1, 2, 3, 7, 255, 256, 511, 513, 65535, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1];
const floats = [Number.NaN, Number.POSITIVE_INFINITY, -1, 0, 1e38, -0, 1e-45];

const mutations = [
  function flipHeaderBits(bytes, draw) {
    for (let n = 1 + draw(4); n > 0; n--) bytes[draw(HEADER_BYTES)] ^= 1 << draw(8);
    return bytes;
  },
  function setHeaderNumber(bytes, draw) {
    bytes.writeUInt32LE(interesting[draw(interesting.length)], draw(HEADER_BYTES));
    return bytes;
  },
  function setValue(bytes, draw) {
    const places = findValues(bytes);
    bytes.writeUInt32LE(interesting[draw(interesting.length)], places[draw(places.length)]);
    return bytes;
  },
  function setFloat(bytes, draw) {
    const places = findValues(bytes);
    bytes.writeFloatLE(floats[draw(floats.length)], places[draw(places.length)]);
    return bytes;
  },
  function renameKey(bytes, draw) {
    // Into another key of the same length, so that counts that belong to other models appear.
    const pairs = [
      ["qwen3.rope.freq_base", "qwen3.expert__count"],
      ["qwen3.block_count", "qwen3.block_cuont"],
      ["qwen3.rope.dimension_count", "qwen3.nextn_predict_layers"],
      ["qwen3.feed_forward_length", "qwen3.expert_group_counts"],
      ["qwen3.attention.key_length", "qwen3.expert_group_count_x"],
    ];
    const [from, to] = pairs[draw(pairs.length)];
    const at = bytes.indexOf(from);
    if (at >= 0) bytes.write(to.slice(0, from.length), at);
    return bytes;
  },
  function copyHeaderPart(bytes, draw) {
    const length = 1 + draw(64);
    bytes.copy(bytes, draw(HEADER_BYTES), draw(HEADER_BYTES), draw(HEADER_BYTES) + length);
    return bytes;
  },
  function repeatToken(bytes, draw) {
    // Tokens are stored as a length of 8 bytes and their text: one text over another of the same length.
    const at = () => bytes.indexOf(Buffer.from([1 + draw(3), 0, 0, 0, 0, 0, 0, 0]), draw(HEADER_BYTES / 4));
    const [a, b] = [at(), at()];
    if (a >= 0 && b >= 0 && bytes[a] === bytes[b]) bytes.copy(bytes, b + 8, a + 8, a + 8 + bytes[a]);
    return bytes;
  },
  function damageWeights(bytes, draw) {
    for (let n = 1 + draw(20); n > 0; n--) {
      const at = HEADER_BYTES + draw((bytes.length - HEADER_BYTES) / 4 - 1) * 4;
      bytes.writeFloatLE(floats[draw(floats.length)], at - (at % 4));
    }
    return bytes;
  },
  function cutOff(bytes, draw) {
    return bytes.subarray(0, draw(2) ? draw(HEADER_BYTES) : draw(bytes.length));
  },
];

/** A tensor's role in llama.cpp follows from its name and shape. */
const roles = {
  vector: ({ shape }) => shape.length === 1,
  bias: ({ name }) => name.endsWith(".bias"),
  matrix: ({ name, shape }) => shape.length === 2 && name.startsWith("blk."),
  embedding: ({ name }) => name === "token_embd.weight",
  output: ({ name }) => name === "output.weight",
};

const pick = (list, draw) => list[draw(list.length)];

/** Ways to write a whole file whose tensors, or numbers, violate llama.cpp's assumptions. */
const tensorMutations = [
  function storeAs(tensors, draw, types) {
    const ofRole = tensors.filter(roles[pick(Object.keys(roles), draw)]);
    const tensor = pick(ofRole.length > 0 ? ofRole : tensors, draw);
    setType(tensor, pick(types, draw), draw);
  },
  function storeSomeAs(tensors, draw, types) {
    for (let n = 2 + draw(4); n > 0; n--) setType(pick(tensors, draw), pick(types, draw), draw);
  },
  function storeRoleAs(tensors, draw, types) {
    const type = pick(types, draw);
    for (const tensor of tensors.filter(roles[pick(Object.keys(roles), draw)])) setType(tensor, type, draw);
  },
  function emptyTensor(tensors, draw) {
    const shape = Array.from({ length: 1 + draw(4) }, () => draw(5));
    shape[draw(shape.length)] = 0;
    tensors.push({ name: "empty.weight", type: "f32", shape: shape.map((n) => n || 1), axes: shape });
  },
  // Sizes of states and convolutions, and which layers have them, are numbers of the architecture alone.
  function setCount(_tensors, draw, _types, metadata) {
    const architecture = metadata.get("general.architecture").value;
    const isCount = (value) => Number.isInteger(value) && value < 2 ** 31;
    const counts = [...metadata].filter(
      ([key, { value }]) => key.startsWith(`${architecture}.`) && [value].flat().every(isCount),
    );
    const [, { raw, value }] = pick(counts, draw);
    // A value's bytes, 4 a number, end its entry.
    const place = Array.isArray(value) ? 1 + draw(value.length) : 1;
    raw.writeUInt32LE(pick([...interesting, 4, 8, 16, 64], draw), raw.length - 4 * place);
  },
];

/** Its bytes are random where the type is another. */
function setType(tensor, type, draw) {
  if (tensor.shape[0] % type.blockSize !== 0) return;
  tensor.type = type.name;
  const count = tensor.shape.reduce((product, n) => product * n, 1);
  // Numbers below 128 only: few of them read as NaN or as huge floats.
  tensor.bytes = Buffer.alloc((count / type.blockSize) * type.blockBytes);
  for (let i = 0; i < tensor.bytes.length; i += 1 + draw(7)) tensor.bytes[i] = draw(128);
}

/** Those of the second line have layers with a state or a convolution in place of attention. */
const families = [
  ...["llama", "qwen2", "qwen3", "qwen3moe", "gpt-oss"].map((architecture) => ({ architecture })),
  ...["lfm2", "qwen35", "granitehybrid"].map((architecture) => ({ architecture, layers: 2 })),
];

async function makeTensorMutant(seed, folder, { engine, testing }) {
  const draw = makeDraw(seed);
  const source = join(folder, "base.gguf");
  const wide = { embedding: 256, heads: 4, kvHeads: 2, headSize: 64, feedForward: 256, layers: 1 };
  if (draw(3) === 0) writeFileSync(source, original);
  else
    await testing.makeTinyModel(source, {
      ...wide,
      ...pick(families, draw),
      tied: draw(2) === 0,
    });
  const header = await engine.readGguf(source);
  const file = readFileSync(source);
  const tensors = header.tensors.map(({ name, type, shape, offset, bytes }) => ({
    name,
    type: type.name,
    shape,
    bytes: file.subarray(offset, offset + bytes),
  }));
  const mutate = pick(tensorMutations, draw);
  mutate(tensors, draw, testing.listTensorTypes(), header.metadata);
  const path = join(folder, "mutant.gguf");
  await engine.writeGguf(path, {
    metadata: Object.fromEntries(header.metadata),
    tensors: tensors.map(({ name, type, shape, bytes }) => {
      const size = 4 * shape.reduce((product, n) => product * n, 1);
      return { name, type, shape, makeBytes: async () => bytes ?? Buffer.alloc(size) };
    }),
  });
  const written = readFileSync(path);
  // The writer refuses an empty tensor: its dimensions are set afterwards.
  for (const { name, axes = [] } of tensors) {
    const at = written.indexOf(name) + name.length + 4;
    for (const [i, n] of axes.entries()) written.writeBigUInt64LE(BigInt(n), at + 8 * i);
  }
  return { kind: mutate.name, bytes: written };
}

/** Half of the mutants are damaged bytes, half are other tensors. */
async function makeMutant(seed, folder, built) {
  if (seed % 2 === 0) return makeTensorMutant(seed, folder, built);
  const draw = makeDraw(seed);
  const mutate = mutations[((seed - 1) / 2) % mutations.length];
  return { kind: mutate.name, bytes: mutate(Buffer.from(original), draw) };
}

/** Child: seeds come in, one JSON line goes out before and after each. */
async function work() {
  const dist = new URL("../../packages/engine/dist/", import.meta.url);
  const engine = await import(new URL("index.js", dist).href);
  const testing = await import(new URL("testing.js", dist).href);
  const { loadModel, quantizeModel } = engine;
  const folder = process.argv[3];
  const ones = { weights: [1, 1, 1, 1], entropyWeights: [0, 0, 0, 0] };
  for await (const line of createInterface({ input: process.stdin })) {
    const seed = Number(line);
    const { kind, bytes } = await makeMutant(seed, folder, { engine, testing });
    const path = join(folder, "mutant.gguf");
    writeFileSync(path, bytes);
    console.log(JSON.stringify({ seed, kind, begins: true }));
    let outcome = "works";
    let model;
    // Training refuses more types than generation does: each has half of the mutants.
    const trains = seed % 4 < 2;
    try {
      if (kind === "emptyTensor")
        await quantizeModel({ input: path, output: `${path}.q8_0`, type: "Q8_0", threads: 1 });
      const lora = trains ? { trainable: "lora", lora: { rank: 2 } } : { trainable: "none" };
      model = await loadModel({ path, contextSize: 64, maxSequences: 2, threads: 1, ...lora });
    } catch (error) {
      outcome = error.code ? "refused" : `untyped error: ${error.message}`;
    }
    if (model) {
      try {
        model.tokenize("a <|im_end|> 12");
        if (trains) {
          await model.score([{ tokenIds: [1, 2, 3, 4] }]);
          const learned = { tokenIds: [1, 2, 3, 4], lossMask: [0, 1, 1, 1], columns: ones };
          await model.train([learned], testing.weightedLogprobs, { learningRate: 1e-4, maxGradNorm: 1 });
        }
        await model.createSequence().generate([1, 2, 3], { maxTokens: 3, stopTokens: [] });
      } catch (error) {
        outcome = error.code ? "refused when used" : `untyped error: ${error.message}`;
      }
      await model.dispose();
    }
    console.log(JSON.stringify({ seed, kind, outcome }));
  }
}

async function run() {
  const count = Number(process.argv[2] ?? 5000);
  const first = Number(process.argv[3] ?? 1);
  const started = performance.now();
  const folder = mkdtempSync(join(tmpdir(), "cria-mutants-"));
  const outcomes = new Map();
  const bad = [];
  let next = first;
  while (next < first + count) {
    const child = spawn(process.execPath, [fileURLToPath(import.meta.url), "--child", folder], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    let errors = "";
    child.stderr.on("data", (text) => {
      errors = (errors + text).slice(-2000);
    });
    const ended = new Promise((resolve) => child.once("close", (code, signal) => resolve({ code, signal })));
    let current = null;
    let timer;
    child.stdin.on("error", () => {});
    child.stdin.write(`${next}\n`);
    for await (const line of createInterface({ input: child.stdout })) {
      const report = JSON.parse(line);
      clearTimeout(timer);
      if (report.begins) {
        current = report;
        timer = setTimeout(() => child.kill("SIGKILL"), HANG_S * 1000);
        continue;
      }
      current = null;
      outcomes.set(report.outcome, (outcomes.get(report.outcome) ?? 0) + 1);
      if (report.outcome.startsWith("untyped")) bad.push(report);
      next++;
      if (next % 100 === 0) console.log(`${next - first} of ${count}`);
      if (next < first + count) child.stdin.write(`${next}\n`);
      else child.stdin.end();
    }
    clearTimeout(timer);
    const { code, signal } = await ended;
    if (current) {
      bad.push({ ...current, code, signal, errors });
      console.log(`mutant ${current.seed} (${current.kind}) ended the process: ${signal ?? code}\n${errors}`);
      next++;
    } else if (next < first + count) throw new Error(`the child ended with ${signal ?? code}: ${errors}`);
  }
  rmSync(folder, { recursive: true, force: true });
  const signals = bad.filter((report) => report.begins).length;
  const result = {
    date: new Date().toISOString().slice(0, 10),
    cpu: cpus()[0].model,
    node: process.version,
    mutants: count,
    first_seed: first,
    signals,
    outcomes: Object.fromEntries(outcomes),
    bad,
    seconds: Math.round((performance.now() - started) / 1000),
  };
  const here = (name) => join(import.meta.dirname, name);
  writeFileSync(here("gguf-mutants.json"), `${JSON.stringify(result, null, 2)}\n`);
  const table = [...outcomes, ["ended the process, or hung", signals]];
  const width = Math.max(...table.map(([outcome]) => outcome.length));
  const rows = table.map(([outcome, n]) => `| ${outcome.padEnd(width)} | ${String(n).padStart(7)} |`);
  const text = [
    "# Damaged model files",
    "",
    `${count} mutants of the embedded policy and of tiny models, each loaded, scored, trained and sampled from. ${result.date}, ${result.cpu}, Node ${result.node}, ${result.seconds} s.`,
    "",
    `| ${"outcome".padEnd(width)} | mutants |`,
    `| ${"-".repeat(width)} | ------: |`,
    ...rows,
    "",
    "Again: `node scripts/nightly/gguf-mutants.mjs`.",
  ];
  writeFileSync(here("gguf-mutants.md"), `${text.join("\n")}\n`);
  console.log(text.join("\n"));
  if (bad.length > 0) process.exitCode = 1;
}

await (process.argv[2] === "--child" ? work() : run());
