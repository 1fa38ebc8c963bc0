/**
 * GRPO on a published model compared with TRL's GRPOTrainer: the steps of examples/tool-choice from the same adapter,
 * rows, prompt text, tools and rewards. peers/trl/README.md lists the settings that were made equal, and the remaining
 * differences. Prompts and logprobs are compared before anything is timed. Each run has a separate process, which gives
 * its peak of memory. The success of equal steps: scripts/nightly/trl-success.mjs.
 */
import type { BenchmarkOptions } from "../benchmark.js";
import { median } from "../measure.js";
import type { Measured, Row } from "../row.js";
import { THREADS } from "../settings.js";
import { type BaseType, openSides, type Size, type Taken } from "./sides.js";

interface Case extends Size {
  title: string;
  models: BaseType[];
  /** TRL's settings of `bf16`. */
  bfloat16: boolean[];
}

/** Forty minutes: a step's time and memory, without what it learns. */
const speed: Case = {
  title: "3 GRPO steps of examples/tool-choice, SmolLM2-135M-Instruct, 8 x 8 samples",
  ...{ rows: 8, samples: 8, steps: 3, demonstrationSteps: 25, heldOut: 0, isJudged: true },
  ...{ models: ["F32", "Q8_0"], bfloat16: [false, true] },
};

/** A few minutes that check whether both sides run: no number is judged. */
const small: Case = {
  title: "2 small steps, to see that both sides run",
  ...{ rows: 2, samples: 4, steps: 2, demonstrationSteps: 2, heldOut: 0, isJudged: false },
  ...{ models: ["F32"], bfloat16: [false, true] },
};

const SEED = 1;

export async function run(options: BenchmarkOptions): Promise<Measured> {
  const rows: Row[] = [];
  for (const size of [small, speed]) if (options.includes(size.title)) rows.push(...(await measure(size, options)));
  return { rows };
}

async function measure(size: Case, { log }: BenchmarkOptions): Promise<Row[]> {
  log(`${size.demonstrationSteps} steps on demonstrations`);
  const sides = await openSides(size);
  try {
    // TRL's threads: those that take a step fastest.
    const tried: Record<string, number> = {};
    let threads = THREADS;
    if (size.isJudged) {
      for (const count of new Set([THREADS, 1]))
        tried[`threads ${count}`] = (await sides.trainTrl(SEED, false, count, 1)).steps[0]!.seconds;
      if (tried["threads 1"]! < tried[`threads ${THREADS}`]!) threads = 1;
    }
    const ours: Partial<Record<BaseType, Taken>> = {};
    const peers: Record<string, Taken> = {};
    for (const type of size.models) ours[type] = await sides.trainOurs(type, SEED);
    for (const bf16 of size.bfloat16) {
      const taken = await sides.trainTrl(SEED, bf16, threads);
      peers[bf16 ? `${taken.name}, bfloat16` : taken.name] = taken;
    }
    log(`logprobs of our sampler and transformers' differ by at most ${sides.apart().toExponential(1)}`);
    return makeRows(size, ours, peers, { used: `threads ${threads}`, tried });
  } finally {
    await sides.close();
  }
}

function makeRows(
  size: Case,
  sides: Partial<Record<BaseType, Taken>>,
  peers: Record<string, Taken>,
  used: NonNullable<Row["settings"]>[string],
): Row[] {
  const settings = Object.fromEntries(Object.keys(peers).map((peer) => [peer, used]));
  const rows: Row[] = [];
  for (const type of size.models) {
    const ours = sides[type]!;
    const add = (
      metric: string,
      pick: (side: Taken) => number,
      target?: [string, (ours: number, theirs: number[]) => boolean],
    ) => {
      const theirs = Object.fromEntries(Object.entries(peers).map(([peer, side]) => [peer, pick(side)]));
      const isTarget = target !== undefined && size.isJudged;
      rows.push({
        ...{ case: size.title, metric: `${metric}, our base in ${type}`, ours: pick(ours), peers: theirs, settings },
        target: isTarget ? target[0] : null,
        met: isTarget ? target[1](pick(ours), Object.values(theirs)) : null,
      });
    };
    const of = (pick: (step: Taken["steps"][number]) => number) => (side: Taken) => median(side.steps.map(pick));
    const times = type === "F32" ? 3 : 5;
    add(
      "seconds a step, median",
      of((step) => step.seconds),
      [`TRL's faster one takes at least ${times} times as long`, (own, theirs) => Math.min(...theirs) >= times * own],
    );
    add(
      "seconds of rollout, median",
      of((step) => step.rollout),
    );
    add(
      "seconds of scoring and training, median",
      of((step) => (step.scoring ?? 0) + step.training),
    );
    add(
      "sampled tokens per second of rollout, median",
      of((step) => step.tokens / step.rollout),
    );
    add("peak memory, MiB", (side) => side.peakMemory / 2 ** 20, [
      "at most half of TRL's smaller one",
      (own, theirs) => own <= Math.min(...theirs) / 2,
    ]);
  }
  return rows;
}
