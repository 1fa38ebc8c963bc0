// Measures how far the sampler's probabilities are from the trainer's (`training/rollout_probs_diff_max`) in two LoRA
// steps of a published model, SmolLM2-135M-Instruct: by type of weights, temperature and kernel, and with caches of F16
// and Q8_0. Writes mismatch.json and mismatch.md next to this file; half an hour of two cores. Results are no times, so
// the machine may be busy.
//
//   node scripts/fetch-real-model.mjs
//   node --conditions=cria-source --import tsx scripts/nightly/mismatch.mjs [--types F32,...] [--kernels avx512,...]
//
// Rows of other types and kernels are kept. The exit code is 1 where the model is missing, or a difference that
// docs/determinism.md promises to be 0 is not.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { getRuntimeInfo } from "../../packages/engine/src/index.ts";
import { defineTask, train } from "../../packages/trainer/src/index.ts";
import { getRealFile } from "../real-file.mjs";
import { missingModel, realModel } from "../real-model.mjs";
import { describeRun } from "./learning.mjs";

const { values } = parseArgs({
  options: {
    types: { type: "string", default: "F32,F16,BF16,Q8_0,Q4_K_M" },
    kernels: { type: "string", default: getRuntimeInfo().usableCpuKernels.join(",") },
    threads: { type: "string", default: "2" },
    child: { type: "string" },
  },
});
if (missingModel !== null) throw new Error(missingModel);
/** Answers of the policy in each conversation. */
const TURNS = 2;
const temperatures = [0.7, 1];
const caches = ["f32", "f16", "q8_0"];
/** Other caches are measured with these weights alone. */
const weightsOfCaches = "F16";

const questions = ["What is a llama?", "Name three rivers.", "Why is the sky blue?", "Count from ten down to one."];

/** Two steps of 16 conversations. The second step samples with an adapter that has learned. */
async function measure({ type, temperature, cache }) {
  const folder = mkdtempSync(join(tmpdir(), "cria-mismatch-"));
  try {
    const run = train({
      model: await getRealFile(type),
      task: defineTask({
        rows: questions.map((question) => ({ question })),
        interaction: ({ messages }) =>
          messages.length < 2 * TURNS ? "Say it in other words." : { shouldTerminate: true },
        // Any reward that varies.
        reward: ({ answer }) => answer.length % 7,
        maxPromptLength: 64,
        maxResponseLength: 96,
      }),
      n: 4,
      steps: 2,
      batchSize: questions.length,
      learningRate: 1e-3,
      temperature,
      threads: Number(values.threads),
      folder,
      config: { actor_rollout_ref: { rollout: { max_tokens_per_turn: 32, kv_cache_dtype: cache } } },
    });
    const steps = [];
    for await (const { metrics } of run) steps.push(metrics);
    const read = (name) => steps.map((step) => step[name]);
    const turns = read("num_turns/min").map((messages) => messages / 2);
    if (turns.some((count) => count !== TURNS)) throw new Error(`expected ${TURNS} turns, received ${turns}`);
    return {
      turns: TURNS,
      tokens: read("engine/decode_tokens").reduce((sum, count) => sum + count, 0),
      differences: read("training/rollout_probs_diff_max"),
      passes: read("training/old_log_prob_pass"),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** True if documentation promises equal bits. */
const isPromised = ({ kernel, type, cache }) => cache === "f32" && (kernel !== "portable" || !type.startsWith("Q"));

const show = (value) => (value === 0 ? "0" : value.toExponential(1));

function writeTable(report) {
  const rows = report.rows.map(({ kernel, type, cache, temperature, turns, tokens, differences, date, commit, cpu }) =>
    [kernel, type, cache.toUpperCase(), temperature, turns, tokens, ...differences.map(show), date, commit, cpu].join(
      " | ",
    ),
  );
  writeFileSync(
    `${result}.md`,
    `# Sampler and trainer, beside each other

The largest difference of a sampled token's probability, by the sampler and by the training graph, in the first and the second of two LoRA
steps: the second samples with an adapter that has learned. SmolLM2-135M-Instruct, SHA-256 \`${report.sha256}\`, written in each type;
16 conversations of so many turns a step.

| kernel | weights | cache | temperature | turns | tokens | step 1 | step 2 | date | commit | machine |
| --- | --- | --- | --: | --: | --: | --: | --: | --- | --- | --- |
${rows.map((row) => `| ${row} |`).join("\n")}

Again: \`node --conditions=cria-source --import tsx scripts/nightly/mismatch.mjs\`.
`,
  );
}

const result = join(import.meta.dirname, "mismatch");
if (values.child) {
  console.log(JSON.stringify(await measure(JSON.parse(values.child))));
} else {
  const known = existsSync(`${result}.json`) ? JSON.parse(readFileSync(`${result}.json`, "utf8")).rows : [];
  const report = { sha256: realModel.sha256, rows: known };
  const types = values.types.split(",");
  const isSame = (a, b) => ["kernel", "type", "cache", "temperature"].every((name) => a[name] === b[name]);
  const order = ({ kernel, type, cache, temperature }) =>
    [kernel, ["F32", "F16", "BF16", "Q8_0", "Q4_K_M"].indexOf(type), caches.indexOf(cache), temperature].join();
  for (const kernel of values.kernels.split(","))
    for (const type of types)
      for (const cache of caches)
        for (const temperature of temperatures) {
          if (cache !== "f32" && (type !== weightsOfCaches || temperature !== 1)) continue;
          const setting = { type, cache, temperature };
          const args = [...process.execArgv, process.argv[1], "--threads", values.threads, "--child"];
          const measured = execFileSync(process.execPath, [...args, JSON.stringify(setting)], {
            encoding: "utf8",
            env: { ...process.env, CRIA_CPU_KERNEL: kernel },
          });
          const row = { kernel, ...setting, ...JSON.parse(measured), ...describeRun() };
          console.log(
            `${kernel}, ${type}, cache ${cache}, temperature ${temperature}: ${row.differences.map(show).join(", ")}`,
          );
          report.rows = [...report.rows.filter((old) => !isSame(old, row)), row].sort((a, b) =>
            order(a) < order(b) ? -1 : 1,
          );
          writeFileSync(`${result}.json`, `${JSON.stringify(report, null, 1)}\n`);
          writeTable(report);
        }
  const wrong = report.rows.filter((row) => isPromised(row) && row.differences.some((value) => value !== 0));
  for (const { kernel, type, temperature } of wrong) console.error(`${kernel}, ${type}, ${temperature}: not 0`);
  process.exitCode = wrong.length > 0 ? 1 : 0;
}
