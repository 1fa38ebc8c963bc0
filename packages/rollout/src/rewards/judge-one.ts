import { CriaError, DataError } from "@cria/core";
import { DeadlineExceeded, runWithDeadline } from "../run-with-deadline.js";
import type { RewardFunction, RewardResult } from "./reward-function.js";
import type { Judgement, RewardManagerOptions, RewardRequest } from "./reward-manager.js";
import { findReward, makeUnknownSource, routeReward } from "./reward-registry.js";

/** Judges one trajectory: by the user's function, else by its `data_source`, else calculateScore, else calcReward. */
export async function judgeOne(
  request: RewardRequest,
  options: RewardManagerOptions,
  signal?: AbortSignal,
): Promise<Judgement> {
  // To route is what happens anyway; here a source without a reward may still be scored by others.
  const own = options.reward === routeReward ? null : (options.reward as RewardFunction | null | undefined);
  const reward = own ?? findReward(request.dataSource);
  if (!reward) return judgeWithoutFunction(request);
  const { dataSource, solutionText, groundTruth, extraInfo, place } = request;
  const call = () => reward(dataSource, solutionText, groundTruth, extraInfo, options.kwargs);
  return readResult(await callReward(call, (): RewardResult => timedOut, place, options, signal), place);
}

/** What stands for the result of a call that took too long. */
export const timedOut: RewardResult = { score: 0, reward_timeout: 1 };

/** Calls a reward function; too late is not an error, but worth `onTimeout`. @throws DataError when it throws. */
export async function callReward<T>(
  call: () => T | Promise<T>,
  onTimeout: () => T,
  place: string,
  options: RewardManagerOptions,
  signal?: AbortSignal,
): Promise<T> {
  const timeoutS = options.timeoutS ?? null;
  const started = performance.now();
  try {
    const result = await runWithDeadline(timeoutS, signal, call);
    // A call that blocks the event loop cannot be interrupted, but its late result does not count either.
    const isLate = timeoutS !== null && performance.now() - started > timeoutS * 1000;
    return isLate ? onTimeout() : result;
  } catch (cause) {
    if (cause instanceof DeadlineExceeded) return onTimeout();
    if (signal?.aborted || cause instanceof CriaError) throw cause;
    throw new DataError("cannot be judged: the reward function failed", {
      code: "data/reward-failed",
      subject: place,
      expected: "a number or { score, ...extra }",
      received: cause instanceof Error ? cause.message : String(cause),
      remedy: "correct the reward function (--verbose shows its stack), or let it return a score in this case",
      cause,
    });
  }
}

/** @throws DataError when it is neither a finite number nor has a score that is one. */
export function readResult(result: RewardResult, place: string): Judgement {
  const { score, ...extra } = typeof result === "object" && result !== null ? result : { score: result };
  if (typeof score === "number" && Number.isFinite(score)) return { score, extra };
  throw new DataError("has a reward that is not a number", {
    code: "data/bad-reward",
    subject: place,
    expected: "a finite number, or { score, ...extra } with one, from the reward function",
    received: typeof score === "number" ? String(score) : (JSON.stringify(result)?.slice(0, 200) ?? typeof result),
    remedy: "check the reward function with this row",
  });
}

function judgeWithoutFunction({ dataSource, interactionScore, toolScore, place }: RewardRequest): Judgement {
  const score = interactionScore ?? toolScore;
  if (score === null) throw makeUnknownSource(dataSource);
  return readResult(score, place);
}
