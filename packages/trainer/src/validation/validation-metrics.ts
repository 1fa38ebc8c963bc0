import { hasFailed, type Trajectory } from "@cria/core";
import { averageExtras } from "@cria/rollout/internal";
import type { StepMetrics } from "../step-metrics.js";
import { describeSamples, type PromptSamples } from "./describe-samples.js";

/**
 * Metrics of a validation under verl's names, by data source. The judged value ("acc" if the reward function returns
 * it, else the reward) is `val-core/<source>/<acc|reward>/{mean@N,best@N/mean,worst@N/mean,maj@N/mean}`; maj needs a
 * `pred` from the reward function. Smaller resample sizes, spreads and other numbers are `val-aux/...`.
 * Conversations that failed are left out; `val-core/<source>/failed_ratio` is their share.
 */
export function makeValidationMetrics(trajectories: readonly Trajectory[]): StepMetrics {
  const metrics: StepMetrics = {};
  for (const [source, members] of groupBy(trajectories, (t) => t.dataSource)) {
    const sizes = new Map([...groupBy(members, (t) => t.uid)].map(([uid, prompt]) => [uid, prompt.length]));
    const most = Math.max(...sizes.values());
    const ended = members.filter((t) => !hasFailed(t));
    metrics[`val-core/${source}/failed_ratio`] = (members.length - ended.length) / members.length;
    const prompts = [...groupBy(ended, (t) => t.uid).values()];
    const judged = ended.every((t) => readNumber(t, "acc") !== null) ? "acc" : "reward";
    for (const name of ended.length > 0 ? listNumbers(ended) : []) {
      for (const [statistic, value] of Object.entries(describeSamples(readSamples(prompts, name, sizes)))) {
        const core = name === judged && isCore(statistic, most);
        metrics[`${core ? "val-core" : "val-aux"}/${source}/${name}/${statistic}`] = value;
      }
    }
  }
  return metrics;
}

/** True for statistics of the prompts with the most samples. */
function isCore(statistic: string, most: number): boolean {
  return [`mean@${most}`, ...["best", "worst", "maj"].map((name) => `${name}@${most}/mean`)].includes(statistic);
}

/**
 * Reads the samples of each prompt. Extras may be ragged: a prompt counts only if all its samples have the number.
 * @param sizes number of samples requested, by uid.
 */
function readSamples(
  prompts: readonly Trajectory[][],
  name: string,
  sizes: ReadonlyMap<string, number>,
): PromptSamples[] {
  const whole = prompts.filter((prompt) => prompt.every((t) => readNumber(t, name) !== null));
  return whole.map((prompt) => ({
    n: sizes.get(prompt[0]!.uid)!,
    values: prompt.map((t) => readNumber(t, name)!),
    predictions: prompt.every(hasPrediction) ? prompt.map((t) => t.extraFields.pred) : null,
  }));
}

function hasPrediction({ extraFields: { pred } }: Trajectory): boolean {
  return pred !== undefined && pred !== null;
}

/** Lists the reward and the numbers that the reward function returned in addition to the score. */
function listNumbers(trajectories: readonly Trajectory[]): string[] {
  return ["reward", ...Object.keys(averageExtras(trajectories)).filter((name) => name !== "pred")];
}

function readNumber(trajectory: Trajectory, name: string): number | null {
  const value = name === "reward" ? trajectory.reward : trajectory.extraFields[name];
  if (typeof value === "boolean") return Number(value);
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}
