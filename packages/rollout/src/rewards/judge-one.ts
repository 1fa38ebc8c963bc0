import type { ScorePart } from "@cria/core";
import { isUsableNumber, largestNumber } from "@cria/episodes/internal";
import { isFatal } from "../is-fatal.js";
import { describeData, keepRecord } from "../plain-data.js";
import { describeError, isDeadlineExceeded, runWithDeadline } from "../run-with-deadline.js";
import type { RewardFunction, RewardResult } from "./reward-function.js";
import type { Judgement, RewardManagerOptions, RewardRequest } from "./reward-manager.js";
import { makeUnknownSource, rewardFunctions } from "./reward-registry.js";

/**
 * Judges one trajectory with the first of: the user's function, the agent loop's own score, the function of its
 * `data_source`, calculateScore, calcReward.
 */
export async function judgeOne(
  request: RewardRequest,
  options: RewardManagerOptions,
  signal?: AbortSignal,
): Promise<Judgement> {
  const own = options.reward as RewardFunction | null | undefined;
  const { rewards = rewardFunctions } = options;
  const { loopScore } = request;
  if (!own && isUsableNumber(loopScore))
    return { score: loopScore, extra: {}, parts: [makePart(loopScore, "the agent")] };
  const reward = own ?? rewards.find(request.dataSource);
  if (!reward) return judgeWithoutFunction(request, rewards.names());
  const { dataSource, solutionText, groundTruth, extraInfo } = request;
  const outcome = await callReward(
    () => reward(dataSource, solutionText, groundTruth, extraInfo, options.kwargs),
    options,
    signal,
  );
  if ("error" in outcome) return { ...outcome, extra: {} };
  return readResult(outcome.result, own ? nameReward(options) : `the reward of data_source "${dataSource}"`);
}

/** Name of the user's reward function where scores are shown. */
export function nameReward({ rewardName = "the reward function" }: RewardManagerOptions): string {
  return rewardName;
}

/**
 * Calls a reward function. An exception or a timeout becomes an `error`.
 * @throws errors that end the run: an abort, and errors of config, data and engine.
 */
export async function callReward<T>(
  call: () => T | Promise<T>,
  options: RewardManagerOptions,
  signal?: AbortSignal,
): Promise<{ result: T } | { error: string }> {
  const timeoutS = options.timeoutS ?? null;
  try {
    return { result: await runWithDeadline(timeoutS, signal, call) };
  } catch (cause) {
    if (isDeadlineExceeded(cause)) return { error: `the reward function gave no answer within ${timeoutS} s` };
    if (signal?.aborted || isFatal(cause)) throw cause;
    return { error: `the reward function failed: ${describeError(cause)}${findPlace(cause)}` };
  }
}

/**
 * Reads the score of an untrusted result: a usable number, or an object that has one. Never throws. @param by name
 * of the judge.
 */
export function readResult(result: RewardResult, by: string): Judgement {
  try {
    const { score, ...extra } = typeof result === "object" && result !== null ? result : { score: result };
    if (isUsableNumber(score)) return { score, extra: keepRecord(extra), parts: [makePart(score, by)] };
    const received = typeof score === "number" ? String(score) : describeData(result);
    return {
      error: `the reward function gave no score: expected a finite number (at most ${largestNumber} in size), or { score, ...extra } with one; received ${received}`,
      extra: {},
    };
  } catch (cause) {
    return { error: `the reward function's result cannot be read: ${describeError(cause)}`, extra: {} };
  }
}

/** @param known sources that have a reward, for errors. */
function judgeWithoutFunction(
  { dataSource, extraInfo, scoreError, place }: RewardRequest,
  known: readonly string[],
): Judgement {
  const { interactionScore, toolScore } = extraInfo;
  // If the interaction's score failed, the tools' score does not replace it.
  const score = interactionScore ?? (scoreError === undefined ? toolScore : null);
  if (isUsableNumber(score)) {
    const by = interactionScore === null ? "calcReward of the tools" : "calculateScore of the interaction";
    return { score, extra: {}, parts: [makePart(score, by)] };
  }
  if (scoreError !== undefined) return { error: scoreError, extra: {} };
  if (score !== null) return { error: `the agent loop gave a score of ${score}`, extra: {} };
  throw makeUnknownSource(dataSource, known, place);
}

function makePart(value: number, by: string): ScorePart {
  return { name: "score", value, weight: 1, by };
}

/** Position in the user's code where an error was thrown: the run continues, so nobody sees the stack. */
function findPlace(cause: unknown): string {
  try {
    const frame = cause instanceof Error ? /^\s+at .*$/m.exec(String(cause.stack))?.[0].trim() : undefined;
    return frame === undefined ? "" : ` (${frame})`;
  } catch {
    return "";
  }
}
