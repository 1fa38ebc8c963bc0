import type { Trajectory, TrajectorySampling } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";
import { type Change, type DumpLine, RecordedAnswers, type RecordedAnswersOptions, Steering } from "@cria/records";
import { listLineCalls, makeReadCalls } from "@cria/records/internal";
import { type ConversationReplay, type DatasetRow, startRollouts } from "@cria/rollout";
import { sampleOnce } from "@cria/rollout/internal";
import type { Policy } from "../policy/policy.js";
import type { Training } from "../run/training.js";
import type { Environment } from "../task/environment.js";

/** A recorded conversation to replay. */
export interface HeldAgain {
  line: DumpLine;
  row: DatasetRow;
  /** Deviation from the record; null: none. */
  change: Change | null;
  answers: Omit<RecordedAnswersOptions, "readCalls">;
}

/** The seeds of a recorded conversation. */
export type TrajectoryDraw = Pick<TrajectorySampling, "seed" | "earlierSeeds">;

export interface HoldOptions {
  /** Sampling parameters common to all; each has its own seeds. */
  sampling: Omit<TrajectorySampling, keyof TrajectoryDraw>;
  /** Versions of the policy, by the numbers in recorded turns; default: `policy` samples all turns. */
  policies?: ReadonlyMap<number, Policy>;
  draws: readonly TrajectoryDraw[];
  step: number;
  /** True if rewards are computed. */
  isJudged: boolean;
  signal?: AbortSignal;
}

/** Replays recorded conversations with the current policy. @throws errors that end a rollout; the signal's reason. */
export async function holdAgain(
  { policy, environment, teachers, settings }: Pick<Training, "policy" | "environment" | "teachers" | "settings">,
  held: readonly HeldAgain[],
  { sampling, policies = new Map(), draws, step, isJudged, signal }: HoldOptions,
): Promise<{ ended: UnjudgedTrajectory[]; judged: Trajectory[] }> {
  const replays = held.map((each, i) => ({
    ...makeReplay({ policy, environment }, each, draws[i]!),
    ...choosePolicies(each, { policy, policies, teachers, keepsKv: settings.partialRollout === "switch_keep_kv" }),
  }));
  const { conversations, finish } = await startRollouts(policy.engine, sampleOnce(held.map(({ row }) => row)), {
    ...environment,
    // The tokens of each text were checked at recording; another check would report only its first finding.
    multiTurn: { ...environment.multiTurn, tokenizationSanityCheckMode: "disable" },
    ...(isJudged ? {} : { reward: () => 0, aggregate: undefined }),
    onFailure: "drop",
    onWarning: undefined,
    tokenizer: policy.tokenizer,
    n: 1,
    ...sampling,
    // Each has its own.
    seed: 0,
    step,
    signal,
    replay: (position) => replays[position]!,
  });
  signal?.throwIfAborted();
  const judged = await finish();
  signal?.throwIfAborted();
  return { ended: conversations, judged };
}

function makeReplay(
  { policy, environment }: { policy: Training["policy"]; environment: Environment },
  { line, row, change, answers }: HeldAgain,
  draw: TrajectoryDraw,
): ConversationReplay {
  const { steer } = new Steering(policy.engine, change);
  const calls = listLineCalls(line);
  if (calls) return { ...draw, steer, calls };
  const readCalls = makeReadCalls(environment, row);
  return { ...draw, steer, answers: new RecordedAnswers(line, { ...answers, readCalls }) };
}

/** Versions of the policy that sampled a conversation's turns, in order; empty where the step's sampled all of them. */
export function readVersions({ turns }: DumpLine): number[] {
  return turns.flatMap(({ policy_version: version }) => version ?? []);
}

interface ChooseOptions extends Pick<Training, "policy" | "teachers"> {
  policies: ReadonlyMap<number, Policy>;
  /** True if a version that took over went on with the keys and values of the one before. */
  keepsKv: boolean;
}

/** Chooses the policy of each turn of a conversation, if several sampled it. */
function choosePolicies(
  { line, row }: HeldAgain,
  { policy, policies, teachers, keepsKv }: ChooseOptions,
): Pick<ConversationReplay, "policies"> {
  const said = line.turns.filter(({ role }) => role === "assistant");
  if (said.some(({ sampled_by }) => sampled_by === "teacher")) {
    const { engine } = policy;
    // The policy samples the turns after the recorded ones.
    return { policies: [...said.map(({ sampled_by }) => (sampled_by ? teachers!.lead(row) : { engine })), { engine }] };
  }
  const versions = readVersions(line);
  if (versions.length === 0) return {};
  return {
    policies: versions.map((policyVersion) => ({
      engine: policies.get(policyVersion)!.engine,
      policyVersion,
      keepsKv,
    })),
  };
}
