import { judgeOne } from "./judge-one.js";
import type { Judgement, RewardManager, RewardManagerOptions, RewardRequest } from "./reward-manager.js";

/** Judges each trajectory on its own, as soon as its conversation ends. */
export class NaiveRewardManager implements RewardManager {
  readonly granularity = "sample";

  constructor(private readonly options: RewardManagerOptions) {}

  judge(requests: readonly RewardRequest[], signal?: AbortSignal): Promise<Judgement[]> {
    return Promise.all(requests.map((request) => judgeOne(request, this.options, signal)));
  }
}
