// Measures the peak memory of a LoRA step, and compares it with the estimate of `cria doctor`: a model of a real shape
// with random weights, sampled from and then trained on one micro-batch of the given tokens. Each has a separate
// process: high-water marks never fall.
//
//   node --conditions=cria-source --import tsx scripts/nightly/train-memory.mjs [--lengths 1024,4096,16384] [--out scripts/nightly/train-memory]
//   ... --model qwen3-4b --type Q4_K_M --lengths 1024 --limit 12 (GiB; the file takes 8 GB of disk while it is made)
//
// Two cores take half an hour, most of it for 16,384 tokens: "16384/8", eight conversations of 2,048 tokens in one
// micro-batch, has as many activations as one conversation, and an eighth of its attention. With --out it writes <out>.json, in which
// the rows of other models stay. The exit code is 1 when an estimate is more than 15 % off, or the limit is exceeded.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { getModelFile } from "../../benchmarks/models/index.ts";
import { makeBatch, policyGradient, toSequences } from "../../benchmarks/train/batch.ts";
import { loadModel, readGguf } from "../../packages/engine/src/index.ts";
import { checkConfig, estimateMemory, readModelShape, trainConfigSchema } from "../../packages/trainer/src/internal.ts";

const { values } = parseArgs({
  options: {
    model: { type: "string", default: "smollm2-135m" },
    type: { type: "string", default: "Q8_0" },
    lengths: { type: "string", default: "1024,4096,16384" },
    limit: { type: "string" },
    out: { type: "string" },
    child: { type: "string" },
  },
});
const rank = 16;
const path = await getModelFile(
  /** @type {import("../../benchmarks/models/index.ts").ModelName} */ (values.model),
  /** @type {import("../../benchmarks/models/index.ts").ModelType} */ (values.type),
);

if (values.child) {
  const [length, conversations = 1] = values.child.split("/").map(Number);
  const model = await loadModel({ path, lora: { rank, alpha: 2 * rank }, contextSize: length, maxSequences: 1 });
  const sequences = toSequences(makeBatch(conversations, length / conversations - 1, model.info.vocabSize, false));
  const sequence = model.createSequence();
  await sequence.generate(Int32Array.from(sequences[0].tokenIds).slice(0, 512), {
    maxTokens: 8,
    seed: 1,
    stopTokens: [],
  });
  sequence.dispose();
  await model.train(sequences, policyGradient, { learningRate: 1e-4, maxGradNorm: 1 }, { microBatchTokens: length });
  console.log(process.resourceUsage().maxRSS * 1024);
  await model.dispose();
} else {
  const shape = readModelShape(await readGguf(path));
  const rows = values.lengths.split(",").map((text) => {
    const [length, conversations = 1] = text.split("/").map(Number);
    const rollout = { max_num_seqs: 1, max_model_len: length };
    const settings = {
      actor_rollout_ref: { model: { path, lora_rank: rank }, rollout },
      data: { train_files: "none" },
    };
    const items = estimateMemory(shape, checkConfig(trainConfigSchema, settings, "train-memory"));
    const estimated = items.reduce((sum, { bytes }) => sum + bytes, 0);
    const own = ["--model", values.model, "--type", values.type, "--child", text];
    const args = [...process.execArgv, process.argv[1], ...own];
    const measured = Number(execFileSync(process.execPath, args, { encoding: "utf8" }));
    const off = estimated / measured - 1;
    console.log(
      `${length} tokens: ${mega(measured)} MB measured, ${mega(estimated)} MB estimated (${(100 * off).toFixed(1)} %)`,
    );
    for (const { name, bytes, detail } of items) console.log(`  ${mega(bytes)} MB ${name}: ${detail}`);
    return {
      model: `${values.model} ${values.type}`,
      tokens: length,
      conversations,
      measured: mega(measured),
      estimated: mega(estimated),
      off: Math.round(1000 * off) / 1000,
    };
  });
  if (values.out) {
    const file = `${values.out}.json`;
    const known = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { rows: [], shapes: {} };
    const result = {
      ...{ date: new Date().toISOString(), cpu: cpus()[0].model, rank, unit: "MB" },
      rows: [...known.rows.filter(({ model }) => model !== rows[0].model), ...rows],
      shapes: { ...known.shapes, [rows[0].model]: shape },
    };
    writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`);
  }
  const limit = values.limit === undefined ? Number.POSITIVE_INFINITY : mega(Number(values.limit) * 2 ** 30);
  process.exitCode = rows.some(({ off, measured }) => Math.abs(off) > 0.15 || measured > limit) ? 1 : 0;
}

function mega(bytes) {
  return Math.round(bytes / 1e6);
}
