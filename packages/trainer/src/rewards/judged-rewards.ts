import type { ScorePart } from "@cria/core";
import type { Judgement, RewardManager, RewardRequest } from "@cria/rollout";
import type { CombinedScore, RewardModels } from "./reward-models.js";

export interface JudgedRewardsOptions {
  /** The rule-based part. */
  rules: RewardManager;
  /** 0: the rules are not used. */
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
      models.judge(requests, signal),
    ]);
    return rules.map((rule, i) => combine(rule, scores[i]!, ruleWeight));
  }

  dispose(): Promise<void> {
    return this.options.models.dispose();
  }
}

/** Scales a part of the rules' score to the total, with a name distinct from the models' parts. */
function weigh(part: ScorePart, ruleWeight: number): ScorePart {
  const name = part.name === "score" ? "rule" : `rule_${part.name}`;
  return { ...part, name, weight: ruleWeight * part.weight };
}

function chooseGranularity({ rules, ruleWeight, models }: JudgedRewardsOptions): RewardManager["granularity"] {
  if (models.comparesGroups) return "batch";
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
  const extra = { ...rule.extra, ...models.extra };
  const errors = ["error" in rule ? rule.error : undefined, models.error].filter((error) => error !== undefined);
  if ("error" in rule || errors.length > 0) return { error: errors.join("; "), extra };
  return {
    score: ruleWeight * rule.score + models.score,
    extra: { ...(ruleWeight === 0 ? {} : { rule_score: rule.score }), ...extra },
    parts: [...(rule.parts ?? []).map((part) => weigh(part, ruleWeight)), ...models.parts],
  };
}
