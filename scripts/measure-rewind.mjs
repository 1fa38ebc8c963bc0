// Measures the cost of a rewind: a conversation is continued from some tokens before its end, by models whose KV can be cut and by
// models with a state, which cannot go back. Prints the table of docs/determinism.md; a minute:
//   node --conditions=cria-source --import tsx scripts/measure-rewind.mjs
import { TinyModels } from "../packages/engine/src/testing/index.ts";
import { randomTokens } from "../packages/engine/src/testing/make-tiny-model.ts";

const [LENGTH, BACK, DELTA, REPEATS] = [2000, 100, 20, 5];
/** @type {import("../packages/engine/src/testing/index.ts").TinyModelOptions} */
const shape = { layers: 4, embedding: 256, heads: 4, kvHeads: 2, headSize: 64, feedForward: 768, type: "q8_0" };

const models = new TinyModels();
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

/** Evaluates `tokens` behind those of the sequence, and samples one token: evaluated tokens, and milliseconds of a CPU. */
async function go(sequence, tokens) {
  const began = process.cpuUsage();
  const { stats } = await sequence.generate(Int32Array.from(tokens), { maxTokens: 1, temperature: 0, stopTokens: [] });
  const { user, system } = process.cpuUsage(began);
  return { evaluated: stats.prefillTokens, milliseconds: (user + system) / 1000 };
}

/** Costs of a continuation at the end, of a new conversation that begins with the same tokens, and of a fork from there. */
async function measure(architecture) {
  const model = await models.load(
    { architecture, ...shape, contextLength: 4096, embeddingScale: 0.1 },
    {
      contextSize: 4096,
      maxSequences: 4,
      threads: 1,
    },
  );
  /** @type {Record<string, { evaluated: number, milliseconds: number }[]>} */
  const found = { "at its end": [], rewound: [], "by a fork": [] };
  for (let i = 0; i < REPEATS; i++) {
    const tokens = randomTokens(LENGTH, i + 1);
    const other = randomTokens(DELTA, 100 + i);
    const whole = model.createSequence();
    await go(whole, tokens.slice(0, LENGTH - BACK));
    const fork = whole.fork();
    await go(whole, tokens.slice(LENGTH - BACK));
    const rewound = model.createSequence();
    found.rewound.push(await go(rewound, [...tokens.slice(0, LENGTH - BACK), ...other]));
    found["by a fork"].push(await go(fork, other));
    found["at its end"].push(await go(whole, other));
    for (const sequence of [whole, fork, rewound]) sequence.dispose();
    await model.flushCache();
  }
  await model.dispose();
  for (const [how, list] of Object.entries(found)) {
    const [evaluated, milliseconds] = ["evaluated", "milliseconds"].map((key) => median(list.map((one) => one[key])));
    console.log(`| ${architecture} | ${how} | ${evaluated} | ${milliseconds.toPrecision(3)} |`);
  }
}

for (const architecture of ["llama", "lfm2", "qwen35", "granitehybrid"]) await measure(architecture);
await models.cleanUp();
