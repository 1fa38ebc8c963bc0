/**
 * The program of `run.sh`, bundled by `prepare.mjs`:
 *   measure parts | models | check | bits | decode | train  --device cuda|cpu  --size full|tiny  --folder DIR
 * Prints one line of JSON for each result: { case, metric, ours } or { check, error, tolerance, ok }. With
 * CRIA_EMULATED_KERNELS the device is the CPU with those kernels: for dry runs.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { LossFunction, TrainSequence } from "@cria/core";
import { inspectBackend, type LlamaModel, type LoadModelOptions, loadModel } from "@cria/engine";
import {
  checkGradients,
  loadEmulated,
  makeNormals,
  makeTinyModel,
  type TinyModelOptions,
  weightedLogprobs,
} from "@cria/engine/testing";
import sizes from "./cases.json" with { type: "json" };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    device: { type: "string", default: "cuda" },
    size: { type: "string", default: "full" },
    folder: { type: "string", default: "." },
    /** Restricts `models` to one weight type; default: all. */
    type: { type: "string" },
  },
});
const device = values.device as "cuda" | "cpu";
const size = sizes[values.size as keyof typeof sizes];
const emulated = process.env.CRIA_EMULATED_KERNELS;
const print = (line: Record<string, unknown>) => console.log(JSON.stringify(line));

/** On `device`; training may be emulated. */
const load = (options: LoadModelOptions): Promise<LlamaModel> =>
  emulated && options.trainable !== "none"
    ? loadEmulated({ threads: 1, ...options, device }, { kernels: emulated })
    : loadModel({ ...options, device });

async function getModel(type: string): Promise<string> {
  const { name, ...shape } = size.model;
  const path = join(values.folder, `${name}-${type}.gguf`);
  if (!existsSync(path))
    await makeTinyModel(path, {
      ...shape,
      architecture: "qwen2",
      tied: true,
      type: type as TinyModelOptions["type"],
      embeddingScale: 1.8 / Math.sqrt(shape.embedding),
    });
  return path;
}

const median = (numbers: number[]): number => [...numbers].sort((a, b) => a - b)[numbers.length >> 1]!;

function makeRows(rows: number, length: number, vocabulary: number): TrainSequence[] {
  const normal = makeNormals(5);
  const token = () => Math.floor(Math.abs(normal()) * 1e6) % vocabulary;
  return Array.from({ length: rows }, (_, row) => {
    const tokenIds = Array.from({ length }, token);
    return {
      tokenIds,
      lossMask: tokenIds.map((_, t) => (t >= length / 2 ? 1 : 0)),
      columns: { advantages: tokenIds.map(() => (row % 2 ? -0.5 : 1)), weights: tokenIds.map(() => normal()) },
    };
  });
}

/** -mean(advantage * logprob): the gradient of GRPO's loss at its first update. */
const policyGradient: LossFunction = ({ logprobs, columns, totals }) => {
  const advantages = columns.advantages!;
  const dLogprobs = Float32Array.from(advantages, (advantage) => -advantage / totals.tokens);
  return { loss: logprobs.reduce((sum, logprob, i) => sum + logprob * dLogprobs[i]!, 0), dLogprobs };
};

/**
 * Tensor cores round products' operands to 10 bits: differences need larger steps, and agree less closely. Beside
 * quantized weights each device rounds activations to eight bits in its own way.
 */
const exact = device === "cpu";
const finiteDifferences = exact ? { step: 2e-3, tolerance: 5e-3 } : { step: 3e-2, tolerance: 8e-2 };
const findTolerance = (type: TinyModelOptions["type"]) => (exact ? 2e-3 : /^q/.test(type ?? "f32") ? 1e-1 : 2e-2);

async function readGradients(model: LlamaModel, batch: TrainSequence[]): Promise<Map<string, Float32Array>> {
  await model.train(batch, weightedLogprobs, null);
  const gradients = new Map<string, Float32Array>();
  for (const { name, trainable } of model.listTensors())
    if (trainable) gradients.set(name, await model.readTensor(name, "gradient"));
  await model.zeroGradients();
  return gradients;
}

/**
 * Checks every trained tensor by finite differences, and against the gradient of the CPU's own code; prints the worst
 * one.
 */
async function check(): Promise<void> {
  const variants: [string, TinyModelOptions, Omit<LoadModelOptions, "path">][] = [
    ["qwen3 F32, full", { architecture: "qwen3" }, { trainable: "full" }],
    ["llama F32, full", { architecture: "llama" }, { trainable: "full" }],
    ["qwen2 Q8_0, LoRA", { architecture: "qwen2", type: "q8_0", feedForward: 96 }, { lora: { rank: 4 } }],
    ["qwen3 Q4_K, LoRA", { type: "q4_K", embedding: 256, headSize: 64, feedForward: 256 }, { lora: { rank: 4 } }],
    ["qwen3 F16, LoRA", { type: "f16" }, { lora: { rank: 4 } }],
  ];
  for (const [name, tiny, options] of variants) {
    const path = join(values.folder, "check.gguf");
    await makeTinyModel(path, tiny);
    const common = { path, contextSize: 64, maxSequences: 2, threads: 1, ...options };
    const batch = [...makeRows(2, 24, 256), ...makeRows(1, 13, 256)];
    const model = await load(common);
    const reference = await loadModel({ ...common, device: "cpu" });
    const wanted = await readGradients(reference, batch);
    const given = await readGradients(model, batch);
    let worst = 0;
    for (const [tensor, want] of wanted) {
      const got = given.get(tensor)!;
      const error = Math.hypot(...want.map((x, i) => x - got[i]!)) / (Math.hypot(...want) || 1);
      worst = Number.isFinite(error) ? Math.max(worst, error) : Number.POSITIVE_INFINITY;
    }
    const tolerance = findTolerance(tiny.type);
    print({ check: `${name}: gradients beside the CPU's`, error: worst, tolerance, ok: worst <= tolerance });
    if (options.trainable === "full") {
      const { step, tolerance } = finiteDifferences;
      const checks = await checkGradients(model, batch, weightedLogprobs, { step });
      const error = Math.max(...checks.map(({ relativeError }) => relativeError));
      print({
        check: `${name}: finite differences, ${checks.length} tensors`,
        error,
        tolerance,
        ok: error <= tolerance,
      });
    }
    await Promise.all([model.dispose(), reference.dispose()]);
  }
}

/** A conversation has the same bits in each batch and each time, and so has a gradient; errors in nats. */
async function bits(): Promise<void> {
  const types: TinyModelOptions["type"][] = ["f32", "f16", "q8_0", "q4_K"];
  for (const type of types) {
    const path = join(values.folder, "bits.gguf");
    await makeTinyModel(path, { type, embedding: 256, headSize: 64, feedForward: 512, layers: 2, embeddingScale: 0.2 });
    const rows = makeRows(64, 20, 256);
    // Some are long: attention then runs over more cells than the others have.
    for (const [i, row] of makeRows(64, 700, 256).entries()) if (i % 8 === 7) rows[i] = row;
    const model = await load({ path, contextSize: 768, maxSequences: 64, lora: { rank: 4 } });
    const run = async (width: number, rows: TrainSequence[]) => {
      const results: { tokenIds: Int32Array; logprobs: Float32Array }[] = [];
      for (let first = 0; first < rows.length; first += width) {
        const group = rows.slice(first, first + width);
        const done = group.map(async ({ tokenIds }, i) => {
          const sequence = model.createSequence();
          const options = { maxTokens: 16, stopTokens: [], seed: first + i, temperature: 1 };
          const result = await sequence.generate(tokenIds, options);
          sequence.dispose();
          return { tokenIds: Int32Array.from(result.tokenIds), logprobs: Float32Array.from(result.logprobs) };
        });
        results.push(...(await Promise.all(done)));
        await model.flushCache();
      }
      return results;
    };
    const short = rows.filter(({ tokenIds }) => tokenIds.length < 100);
    for (const [kind, given] of [
      ["short", short],
      ["short and long", rows],
    ] as const) {
      const together = await run(64, given);
      for (const width of [64, 16, 5, 1]) {
        let [same, largest] = [0, 0];
        for (const [i, { tokenIds, logprobs }] of (await run(width, given)).entries()) {
          const other = together[i]!;
          if (logprobs.every((x, t) => Object.is(x, other.logprobs[t]))) same++;
          // Up to the first token that differs, where the conversations part.
          for (let t = 0; t < logprobs.length && tokenIds[t] === other.tokenIds[t]; t++)
            largest = Math.max(largest, Math.abs(logprobs[t]! - other.logprobs[t]!));
        }
        const check = `bits ${type}, ${kind}, batches of ${width} beside 64: ${same} of ${given.length} are equal`;
        print({ check, error: largest, tolerance: 0, ok: same === given.length });
      }
    }
    const batch = [...makeRows(3, 40, 256), ...makeRows(2, 17, 256)];
    const [first, second] = [await readGradients(model, batch), await readGradients(model, batch)];
    const repeats = [...first].every(([name, gradient]) =>
      gradient.every((x, i) => Object.is(x, second.get(name)![i])),
    );
    print({ check: `${type}: gradients twice, the same bits`, error: repeats ? 0 : 1, tolerance: 0, ok: repeats });
    await model.dispose();
  }
}

async function decode(): Promise<void> {
  const { sequences, prompt, tokens, rounds } = size.decode;
  for (const type of size.types) {
    const path = await getModel(type);
    const contextSize = prompt + tokens + 1;
    for (const count of sequences) {
      // With deterministic: true a batch on a GPU has always maxSequences rows.
      const model = await load({ path, trainable: "none", contextSize, maxSequences: count });
      const rates: number[] = [];
      for (let round = -1; round < rounds; round++) {
        const conversations = makeRows(count, prompt, size.model.vocabulary).map(({ tokenIds }) => ({
          sequence: model.createSequence(),
          tokenIds,
        }));
        // Prompts first, so that only decoding is timed.
        await Promise.all(conversations.map(({ sequence, tokenIds }) => sequence.prefill(tokenIds)));
        const started = performance.now();
        const results = await Promise.all(
          conversations.map(({ sequence }, seed) =>
            sequence.generate([], { maxTokens: tokens, stopTokens: [], seed, temperature: 1 }),
          ),
        );
        const seconds = (performance.now() - started) / 1e3;
        const sampled = results.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0);
        if (round >= 0) rates.push(sampled / seconds);
        for (const { sequence } of conversations) sequence.dispose();
      }
      print({ case: `decode ${size.model.name} ${type}, ${count} sequences`, metric: "tokens/s", ours: median(rates) });
      await model.dispose();
    }
  }
}

async function train(): Promise<void> {
  const { batches, rank, rounds } = size.train;
  for (const type of size.types) {
    const path = await getModel(type);
    const lora = { rank, alpha: 2 * rank };
    const model = await load({
      path,
      trainable: "lora",
      lora,
      contextSize: 64,
      maxSequences: 1,
      trainingMemory: 8 * 2 ** 30,
    });
    for (const { rows, length } of batches) {
      const batch = makeRows(rows, length, size.model.vocabulary);
      const rates: number[] = [];
      for (let round = -2; round < rounds; round++) {
        const started = performance.now();
        const { gradNorm } = await model.train(
          batch,
          policyGradient,
          { learningRate: 1e-4, maxGradNorm: 1 },
          { microBatchTokens: rows * length },
        );
        if (!(gradNorm > 0)) throw new Error(`the gradient's norm is ${gradNorm}`);
        if (round >= 0) rates.push((rows * length * 1e3) / (performance.now() - started));
      }
      print({
        case: `train ${size.model.name} ${type}, LoRA r${rank}, ${rows} x ${length}`,
        metric: "tokens/s",
        ours: median(rates),
      });
    }
    await model.dispose();
  }
}

const commands: Record<string, () => Promise<void>> = {
  check,
  bits,
  models: async () => {
    for (const type of size.types.filter((name) => !values.type || name === values.type)) await getModel(type);
  },
  decode,
  train,
  parts: async () => {
    for (const part of inspectBackend("cuda")) print({ part: part.name, found: part.found, problem: part.problem });
  },
};
const command = commands[positionals[0] ?? ""];
if (!command) throw new Error(`one of ${Object.keys(commands).join(", ")}`);
await command();
