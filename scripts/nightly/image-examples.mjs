// Trains examples/vision and examples/zoom by their configs with seeds 1 to 3, draws the learning curves of docs/images.md, and
// writes image-examples.json beside this file. Fails where a seed learns less than it must, starts without a bad habit, or
// takes too long.
//   node --import tsx scripts/nightly/image-examples.mjs [--only TEXT]     (after `npm run bootstrap`; keep the machine idle)
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { drawSvgChart } from "../../apps/trainer/src/demo/draw-chart.ts";
import { learn } from "../../examples/vision/learn.ts";

const root = join(import.meta.dirname, "..", "..");
const { values } = parseArgs({ options: { only: { type: "string", default: "" } } });
const seeds = [1, 2, 3];
const colors = ["#1f77b4", "#2ca02c", "#d62728"];
/** Steps whose mean a point of a curve is: a step has 16 pictures, which differ in how hard they are. */
const WINDOW = 10;

/** `habit` is the most that a policy may know when training starts; `miss` says what a result lacks. */
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
  const began = performance.now();
  const cpu = process.cpuUsage();
  const { before, after, rewards, seconds } = await learn(folder, { seed });
  const { user, system } = process.cpuUsage(cpu);
  const result = {
    seed,
    before,
    after,
    steps: rewards.length,
    seconds: Math.round((performance.now() - began) / 1000),
    seconds_of_stages: Math.round(seconds.stages),
    seconds_of_training: Math.round(seconds.train),
    cpu_seconds: Math.round((user + system) / 1e6),
  };
  console.log(JSON.stringify(result));
  return { result, rewards };
}

/** Means of `WINDOW` steps each, at the last of them. */
const smooth = (rewards) =>
  rewards.slice(WINDOW - 1).map((_, i) => ({
    x: i + WINDOW,
    y: rewards.slice(i, i + WINDOW).reduce((sum, reward) => sum + reward, 0) / WINDOW,
  }));

function drawCurves(title, runs) {
  const series = runs.map(({ result: { seed, before, after }, rewards }, i) => ({
    name: `seed ${seed}: ${before.sampled.toFixed(2)} → ${after.sampled.toFixed(2)}`,
    color: colors[i],
    points: smooth(rewards),
  }));
  return drawSvgChart(`${title}: mean reward of ${WINDOW} steps, and held out, before → after`, series);
}

const written = join(import.meta.dirname, "image-examples.json");
const report = {
  date: new Date().toISOString().slice(0, 10),
  commit: execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).trim(),
  node: process.version,
  cpu: `${cpus().length} cores of ${cpus()[0].model}`,
  examples: values.only ? JSON.parse(readFileSync(written, "utf8")).examples : {},
  misses: [],
};
for (const { name, title, seconds, habit, misses } of examples) {
  const folder = join(root, "examples", name);
  execFileSync("npm", ["run", "--silent", "make-data"], { cwd: folder, stdio: "inherit" });
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
  writeFileSync(join(root, "docs", `images-learning-${name}.svg`), drawCurves(title, runs));
}
writeFileSync(written, `${JSON.stringify(report, null, 2)}\n`);
if (report.misses.length > 0) {
  console.error(report.misses.join("\n"));
  process.exitCode = 1;
}
