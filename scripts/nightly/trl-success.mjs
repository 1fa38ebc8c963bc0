// Equal GRPO steps by ours and by TRL, and their success: examples/tool-choice with a published model, from the same adapter, rows,
// rewards and settings (benchmarks/peers/trl/README.md). Writes trl-success.json beside this file after each seed; results
// of other seeds stay there. Fails where the means of ours and TRL's differ by more than two standard errors.
//   node scripts/fetch-real-model.mjs --python
//   node --conditions=cria-source --import tsx scripts/nightly/trl-success.mjs [--seeds 1,2,3] [--steps 40]
//     (an hour and a half a seed: one thread each, so that two processes train two seeds)
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openSides } from "../../benchmarks/trl/sides.ts";
import { realModel } from "../real-model.mjs";
import { describeRun, makeData, mean, measureTime, readReport, root, writeReport } from "./learning.mjs";

const { values } = parseArgs({
  options: { seeds: { type: "string", default: "1,2,3" }, steps: { type: "string", default: "40" } },
});
const size = {
  ...{ rows: 4, samples: 4, steps: Number(values.steps), demonstrationSteps: 40, heldOut: 120 },
  ...{ isJudged: true, threads: 1 },
};
const bases = ["F32", "Q8_0"];

const file = "trl-success.json";

const errorOf = (list) =>
  Math.sqrt(list.reduce((sum, value) => sum + (value - mean(list)) ** 2, 0) / (list.length - 1) / list.length);

/** Means over the seeds, and what differs by more than two standard errors of the difference. */
function compare(seeds) {
  const of = (side) => seeds.map(({ success }) => success[side]);
  const means = Object.fromEntries(Object.keys(seeds[0].success).map((side) => [side, mean(of(side))]));
  if (seeds.length < 2) return { means, misses: [`${seeds.length} seed: no standard error`] };
  const misses = bases.flatMap((base) => {
    const apart = Math.abs(means[base] - means.trl);
    const noise = 2 * Math.hypot(errorOf(of(base)), errorOf(of("trl")));
    return apart > noise ? [`${base}: ${apart} from TRL's success, at most ${noise} expected`] : [];
  });
  return { means, misses };
}

async function trainBySeed(sides, seed) {
  const success = {};
  const rewards = {};
  const seconds = {};
  const take = async (name, base, train) => {
    const { result: taken, time } = await measureTime(train);
    success[name] = await sides.judge(taken.trained, base, seed);
    rewards[name] = taken.steps.map(({ reward }) => reward);
    seconds[name] = time.seconds;
    return taken;
  };
  success.start = await sides.judge(sides.start, "F32", seed);
  for (const base of bases) await take(base, base, () => sides.trainOurs(base, seed));
  const { name: peer } = await take("trl", "F32", () => sides.trainTrl(seed, false, 1));
  return { seed, ...describeRun(), peer, apart: sides.apart(), success, rewards, seconds };
}

makeData(join(root, "examples", "tool-choice"));
const sides = await openSides(size);
try {
  for (const seed of values.seeds.split(",").map(Number)) {
    const result = await trainBySeed(sides, seed);
    console.log(JSON.stringify({ ...result, rewards: undefined }));
    const others = (readReport(file)?.seeds ?? []).filter((other) => other.seed !== seed);
    const seeds = [...others, result].sort((a, b) => a.seed - b.seed);
    const { heldOut, ...settings } = size;
    writeReport(file, {
      model: realModel.address,
      sha256: realModel.sha256,
      settings: { ...settings, heldOutRows: 2 * heldOut },
      ...compare(seeds),
      seeds,
    });
  }
} finally {
  await sides.close();
}
