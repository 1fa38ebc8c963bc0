// Trains examples/vision and examples/zoom by their configs with seeds 1 to 3, draws the learning curves of docs/images.md, and
// writes image-examples.json next to this file. Fails where a seed learns less than it must, starts without a bad habit, or
// takes too long.
//   node --import tsx scripts/nightly/image-examples.mjs [--only TEXT]     (after `npm run bootstrap`; keep the machine idle)
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { learn } from "../../examples/vision/learn.ts";
import { describeRun, drawCurves, makeData, measureTime, root, writeReport } from "./learning.mjs";

const { values } = parseArgs({ options: { only: { type: "string", default: "" } } });
const seeds = [1, 2, 3];
/** Steps that a point of a curve averages: a step has 16 pictures of different difficulty. */
const WINDOW = 10;

/** `habit` is the most that a policy may know when training starts; `miss` names the shortcoming of a result. */
const examples = [
  {
    name: "vision",
    title: "Which digit?",
    seconds: 120,
    habit: 0.5,
    misses: (results) =>
      results
        .filter(({ after }) => Math.min(after.greedy, after.sampled) < 0.9)
        .map(
          ({ seed, after }) => `seed ${seed} reaches ${after.greedy} greedy and ${after.sampled} sampled, 0.9 expected`,
        ),
  },
  {
    name: "zoom",
    title: "Zoom, then read",
    seconds: 360,
    habit: 0.45,
    misses: (results) => {
      const mean = results.reduce((sum, { after }) => sum + after.sampled, 0) / results.length;
      return mean < 0.85 ? [`sampled rewards have a mean of ${mean}, 0.85 expected`] : [];
    },
  },
].filter(({ name }) => name.includes(values.only));

async function trainBySeed(folder, seed) {
  const { result: learned, time } = await measureTime(() => learn(folder, { seed }));
  const { before, after, rewards, seconds } = learned;
  const result = {
    seed,
    before,
    after,
    steps: rewards.length,
    seconds: time.seconds,
    seconds_of_stages: Math.round(seconds.stages),
    seconds_of_training: Math.round(seconds.train),
    cpu_seconds: time.cpu_seconds,
  };
  console.log(JSON.stringify(result));
  const label = `seed ${seed}: ${before.sampled.toFixed(2)} → ${after.sampled.toFixed(2)}`;
  return { result, label, values: rewards };
}

const file = "image-examples.json";
const report = {
  ...describeRun(),
  examples: values.only ? JSON.parse(readFileSync(join(import.meta.dirname, file), "utf8")).examples : {},
  misses: /** @type {string[]} */ ([]),
};
for (const { name, title, seconds, habit, misses } of examples) {
  const folder = join(root, "examples", name);
  makeData(folder);
  const runs = [];
  for (const seed of seeds) runs.push(await trainBySeed(folder, seed));
  const results = runs.map(({ result }) => result);
  report.examples[name] = results;
  report.misses.push(
    ...misses(results),
    ...results.flatMap(({ seed, before }) =>
      before.sampled > habit ? [`seed ${seed} starts from ${before.sampled} sampled, at most ${habit} expected`] : [],
    ),
    ...results.flatMap((result) =>
      result.seconds > seconds ? [`seed ${result.seed} takes ${result.seconds} s, at most ${seconds} expected`] : [],
    ),
  );
  drawCurves(
    `images-learning-${name}`,
    `${title}: mean reward of ${WINDOW} steps, and held out, before → after`,
    runs,
    WINDOW,
  );
}
writeReport(file, report);
