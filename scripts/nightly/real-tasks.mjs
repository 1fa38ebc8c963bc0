// Trains the examples of published models by their configs: untouched, after demonstrations, after reinforcement
// learning, and measures each on held-out rows. Draws docs/real-tasks-<task>.svg and writes real-tasks.json beside this
// file; results of other tasks and seeds stay there. Fails where the model is missing, and where a task learns less
// than it must or takes too long.
//   node scripts/fetch-real-model.mjs
//   node --import tsx scripts/nightly/real-tasks.mjs [--task tool-choice] [--seeds 1,2,3] [--threads 1] [--gsm8k FOLDER]
//     (after `npm run bootstrap`; keep the machine idle, or let a process for each core train other seeds by one thread)
// --gsm8k: train.jsonl and test.jsonl as published; default: where the README of examples/gsm8k-calculator puts them.
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { learn } from "../../examples/learn/learn.ts";
import { summarize } from "../../examples/learn/success.ts";
import { getRealFile } from "../real-file.mjs";
import { missingModel, realModel } from "../real-model.mjs";
import { describeRun, drawCurves, makeData, measureTime, readReport, root, writeReport } from "./learning.mjs";

const { values } = parseArgs({
  options: {
    task: { type: "string" },
    seeds: { type: "string", default: "1,2,3" },
    threads: { type: "string" },
    gsm8k: { type: "string" },
  },
});
if (missingModel !== null) throw new Error(missingModel);

/**
 * `success` is the least success expected on held-out rows, `gain` the least that reinforcement learning adds to the
 * demonstrations' success: it must exceed that in any case. `source` are arguments of the program that makes the rows.
 */
const tasks = [
  { name: "tool-choice", title: "Which tool, if any", success: 0.8, gain: 0.25, seconds: 7200, window: 1, source: [] },
  {
    name: "library-desk",
    title: "Search, lend, answer",
    success: 0.9,
    gain: 0.1,
    seconds: 1800,
    window: 3,
    source: [],
  },
  {
    ...{ name: "gsm8k-calculator", title: "GSM8K with a calculator", success: 0, gain: 0, seconds: 7200, window: 10 },
    source: values.gsm8k === undefined ? [] : [resolve(values.gsm8k)],
  },
].filter(({ name }) => values.task === undefined || name === values.task);
if (tasks.length === 0) throw new Error(`--task ${values.task}: no such task`);

/** Applies `of` to the rows of each stage. */
const ofStages = ({ untouched, sft, rl }, of) => ({ untouched: of(untouched), sft: of(sft), rl: of(rl) });

// As the configs name it.
const model = await getRealFile("Q8_0");
const threads = values.threads === undefined ? [] : [`trainer.threads=${values.threads}`];
async function trainBySeed(folder, seed) {
  const { result: learned, time } = await measureTime(() =>
    learn(folder, { seed, model, overrides: { sft: threads, rl: threads } }),
  );
  const { untouched, sft, rl, successes, seconds, peakMemory } = learned;
  const result = {
    ...{ seed, ...describeRun() },
    held_out: ofStages(learned, (rows) => summarize(rows).success),
    /** 95 %, Wilson's. */
    interval: ofStages(learned, (rows) => summarize(rows).interval),
    by_kind: { untouched, sft, rl },
    steps: successes.length,
    ...time,
    seconds_of: Object.fromEntries(Object.entries(seconds).map(([what, spent]) => [what, Math.round(spent)])),
    peak_mib: Math.round(peakMemory / 2 ** 20),
    successes,
  };
  console.log(JSON.stringify({ ...result, successes: undefined }));
  return result;
}

const file = "real-tasks.json";
/** Expectations of a task that a result misses. */
function listMisses({ name, success, gain, seconds: most }, { seed, held_out: { sft, rl }, seconds }) {
  const misses = [];
  if (rl < success) misses.push(`${name}, seed ${seed}: ${rl} held out, ${success} expected`);
  if (rl <= sft || rl - sft < gain)
    misses.push(`${name}, seed ${seed}: ${rl - sft} above demonstrations, ${gain} expected`);
  if (seconds > most) misses.push(`${name}, seed ${seed} takes ${seconds} s, at most ${most} expected`);
  return misses;
}

/** Writes what is known of all tasks; after each seed, since one takes an hour. */
function writeResults(stored) {
  const misses = tasks.flatMap((task) => (stored[task.name] ?? []).flatMap((result) => listMisses(task, result)));
  const model = `${realModel.address}, written in Q8_0`;
  writeReport(file, { model, sha256: realModel.sha256, tasks: stored, misses });
}

const folderOf = (name) => join(root, "examples", name);
for (const { name, source } of tasks) makeData(folderOf(name), source);
for (const { name, title, window } of tasks)
  for (const seed of values.seeds.split(",").map(Number)) {
    const result = await trainBySeed(folderOf(name), seed);
    const stored = readReport(file)?.tasks ?? {};
    const others = (stored[name] ?? []).filter((other) => other.seed !== seed);
    stored[name] = [...others, result].sort((a, b) => a.seed - b.seed);
    const runs = stored[name].map(({ seed, held_out: { sft, rl }, successes }) => ({
      label: `seed ${seed}: ${sft.toFixed(2)} → ${rl.toFixed(2)}`,
      values: successes,
    }));
    const says = `${title}: success of ${window} steps, and held out, before → after`;
    drawCurves(`real-tasks-${name}`, says, runs, window);
    writeResults(stored);
  }
