import { ConfigError, DataError } from "@cria/core";
import { callReward, judgeOne, nameReward, readResult } from "./judge-one.js";
import type { BatchRewardFunction } from "./reward-function.js";
import type { Judgement, RewardManager, RewardManagerOptions, RewardRequest } from "./reward-manager.js";

/** Judges all trajectories of a step in one call of the user's function, after the last conversation has ended. */
export class BatchRewardManager implements RewardManager {
  readonly granularity = "batch";

  constructor(private readonly options: RewardManagerOptions) {}

  /** @throws ConfigError or DataError when the function does not return a list, or one of another length. */
  async judge(requests: readonly RewardRequest[], signal?: AbortSignal): Promise<Judgement[]> {
    const { reward, kwargs } = this.options;
    // Without a user's function, the data source selects a reward for each trajectory.
    if (!reward) return Promise.all(requests.map((request) => judgeOne(request, this.options, signal)));
    const call = () =>
      (reward as BatchRewardFunction)(
        requests.map((r) => r.dataSource),
        requests.map((r) => r.solutionText),
        requests.map((r) => r.groundTruth),
        requests.map((r) => r.extraInfo),
        kwargs,
      );
    const outcome = await callReward(call, this.options, signal);
    if ("error" in outcome) return requests.map(() => ({ ...outcome, extra: {} }));
    const results = outcome.result;
    if (!Array.isArray(results))
      throw new ConfigError("does not judge batches", {
        code: "config/bad-value",
        subject: "custom_reward_function",
        expected: "with reward_manager batch, a function of lists that returns a list",
        received: typeof results,
      });
    if (results.length !== requests.length)
      throw new DataError("has another number of rewards than trajectories", {
        code: "data/bad-reward",
        subject: `batch of ${requests.length} trajectories`,
        expected: `${requests.length} results from the reward function`,
        received: String(results.length),
      });
    return results.map((result) => readResult(result, nameReward(this.options)));
  }
}
