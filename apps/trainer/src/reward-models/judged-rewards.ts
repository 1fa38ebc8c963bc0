import type { Trajectory } from "@cria/core";
import type { Judgement, RewardManager, RewardRequest } from "@cria/rollout";
import type { CombinedScore, RewardModels } from "./reward-models.js";

export interface JudgedRewardsOptions {
  /** The rule-based part. */
  rules: RewardManager;
  /** 0: the rules are not asked. */
  ruleWeight: number;
  models: RewardModels;
}

/** Rewards by rules and by models: score = ruleWeight · rule + Σ weight · model. */
export class JudgedRewards implements RewardManager {
  readonly granularity: RewardManager["granularity"];

  constructor(private readonly options: JudgedRewardsOptions) {
    this.granularity = chooseGranularity(options);
  }

  async judge(requests: readonly RewardRequest[], signal?: AbortSignal): Promise<Judgement[]> {
    const { models, ruleWeight } = this.options;
    const [rules, scores] = await Promise.all([
      askRules(this.options, requests, signal),
      Promise.all(requests.map((request) => models.judge(request, signal))),
    ]);
    return rules.map((rule, i) => combine(rule, scores[i]!, ruleWeight));
  }

  /** For the rollouts of one step, whose tokens are needed before their scores. */
  defer(signal?: AbortSignal): DeferredRewards {
    return new DeferredRewards(this.options, signal);
  }

  dispose(): Promise<void> {
    return this.options.models.dispose();
  }
}

/**
 * Gives rollouts the rules' scores alone, and has the models work in the background from the moment a conversation ends:
 * rollouts are over before all are judged, and the step goes on with what needs no scores.
 */
export class DeferredRewards implements RewardManager {
  readonly granularity: RewardManager["granularity"];
  /** By place among the trajectories. */
  private readonly pending = new Map<number, Promise<CombinedScore>>();

  constructor(
    private readonly options: JudgedRewardsOptions,
    private readonly sessionSignal: AbortSignal | undefined,
  ) {
    this.granularity = chooseGranularity(options);
  }

  judge(requests: readonly RewardRequest[], signal?: AbortSignal): Promise<Judgement[]> {
    // The rollouts' own signal hears nothing any more once they are over.
    const stop = AbortSignal.any([signal, this.sessionSignal].filter((s) => s !== undefined));
    for (const request of requests) {
      const scoring = this.options.models.judge(request, stop);
      // Whoever waits hears of a failure; until then nobody does, and it must not end the process.
      scoring.catch(() => undefined);
      this.pending.set(request.order, scoring);
    }
    return askRules(this.options, requests, signal);
  }

  /**
   * Waits for the models.
   * @param trajectories all of the rollouts, in order; one that failed was not judged and stays as it is.
   * @param weight of the trajectory's score in its reward.
   */
  finish(trajectories: readonly Trajectory[], weight: number): Promise<Trajectory[]> {
    return Promise.all(
      trajectories.map(async (trajectory, order) => {
        const scored = await this.pending.get(order);
        if (!scored) return trajectory;
        const { extraFields, reward, responseMask } = trajectory;
        const rule = extraFields.score as number;
        const { score, extra } = combine({ score: rule, extra: {} }, scored, this.options.ruleWeight);
        const gained = responseMask.includes(1) ? weight * (score - rule) : 0;
        return { ...trajectory, reward: reward + gained, extraFields: { ...extraFields, ...extra, score } };
      }),
    );
  }
}

function chooseGranularity({ rules, ruleWeight }: JudgedRewardsOptions): RewardManager["granularity"] {
  return ruleWeight === 0 ? "sample" : rules.granularity;
}

async function askRules(
  { rules, ruleWeight }: JudgedRewardsOptions,
  requests: readonly RewardRequest[],
  signal: AbortSignal | undefined,
): Promise<Judgement[]> {
  return ruleWeight === 0 ? requests.map(() => ({ score: 0, extra: {} })) : rules.judge(requests, signal);
}

function combine(rule: Judgement, models: CombinedScore, ruleWeight: number): Judgement {
  return {
    score: ruleWeight * rule.score + models.score,
    extra: { ...rule.extra, ...(ruleWeight === 0 ? {} : { rule_score: rule.score }), ...models.extra },
  };
}
