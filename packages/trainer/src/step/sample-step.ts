import type { Trajectory } from "@cria/core";
import type { DatasetRow, OnRequestState, RolloutOptions, Semaphore } from "@cria/rollout";
import { sampleOnce } from "@cria/rollout/internal";
import type { Policy } from "../policy/policy.js";
import type { Stopwatch } from "../timing/stopwatch.js";
import { collectRollouts, rollOutGreedily, type SampledStep } from "./collect-rollouts.js";
import { type RollOutOptions, rollOut } from "./roll-out.js";
import type { StepParts } from "./step-parts.js";

export interface SampleInputs {
  rows: readonly DatasetRow[];
  /** Number of the step, from 1. */
  step: number;
  /** Returns fresh prompts for dynamic sampling. */
  nextRows?: () => readonly DatasetRow[];
  /** The policy that samples the step; default: the trained policy. */
  version?: Policy;
  /** The newest version, which samples the next turn of each conversation; default: `version` samples all of them. */
  newest?: () => Policy;
  /** Slots shared by steps that are sampled concurrently. Default: as many as the engine holds sequences. */
  slots?: Semaphore;
  /** Records what the step's conversations are answered: those that it learns from, and those of its baselines. */
  journals?: Record<"sampled" | "greedy", RolloutOptions["journal"]>;
  onTrajectory?: (trajectory: Trajectory) => void;
  /** Called with each state that a conversation enters. */
  onState?: OnRequestState;
}

/**
 * Rolls out the conversations of each prompt: the row's own number, else `n`. Tools run and rewards are judged
 * meanwhile. With `filterGroups`, prompts whose rewards are all equal are replaced.
 * @throws ToolError when every conversation failed; the signal's reason.
 */
export async function sampleStep(
  { settings, registries, policy, environment, teachers, coordination, signal }: SampleParts,
  { rows, step, nextRows, version = policy, newest, slots, journals, onTrajectory, onState }: SampleInputs,
  clock: Stopwatch,
): Promise<SampledStep> {
  const { algorithm, seed } = settings;
  const { onFailure, rewards } = settings.environment;
  const estimator = registries.advantageEstimators.get(algorithm.advantages);
  const sampling: RollOutOptions = {
    ...settings.sampling,
    seed,
    step,
    signal,
    slots,
    onState,
    journal: journals?.sampled,
    turnValues: estimator.needs?.includes("turnValues") ? algorithm.turnValues : null,
    choose: newest ? () => describeVersion(newest(), settings) : teachers?.guide(step),
    converse: await coordination?.converseBy(version),
  };
  const collected = await collectRollouts(
    rows,
    {
      rollOut: (asked) => rollOut(version, environment, asked, { ...sampling, onTrajectory }),
      estimator,
      filter: algorithm.filterGroups,
      // Refilling needs the judges' results first.
      mayJudgeLater: rewards.judges?.launchRewardFnAsync === true && onFailure !== "refill",
      nextRows,
    },
    clock,
  );
  const name = `the greedy rollouts of step ${step}`;
  const once = { ...sampling, choose: undefined, n: 1, tree: null, turnValues: null };
  const greedy = { ...once, temperature: 0, name, journal: journals?.greedy };
  const greedyRewards = estimator.needs?.includes("baselines")
    ? await rollOutGreedily(sampleOnce(collected.rows), (asked) => rollOut(version, environment, asked, greedy), clock)
    : null;
  return { ...collected, greedyRewards };
}

type SampleParts = Pick<
  StepParts,
  "settings" | "registries" | "policy" | "environment" | "teachers" | "coordination" | "signal"
>;

function describeVersion({ engine, updates }: Policy, { partialRollout }: StepParts["settings"]) {
  return { engine, policyVersion: updates + 1, keepsKv: partialRollout === "switch_keep_kv" };
}
