import { ConfigError } from "@cria/core";

export type RewardResult = number | { score: number; [extra: string]: unknown };

/** Judges what the model sampled (`solutionText`); the whole conversation is in `extraInfo.messages`. */
export type RewardFunction = (
  dataSource: string,
  solutionText: string,
  groundTruth: unknown,
  extraInfo: Record<string, unknown>,
) => RewardResult | Promise<RewardResult>;

const rewards = new Map<string, RewardFunction>();

export function registerReward(dataSource: string, reward: RewardFunction): void {
  rewards.set(dataSource, reward);
}

/** The number after the last "####", or null. */
export function extractFinalAnswer(text: string): string | null {
  const match = /####\s*(-?[\d.,]+)[^\d]*$/.exec(text.slice(text.lastIndexOf("####")));
  return match ? match[1]!.replace(/,/g, "").replace(/\.$/, "") : null;
}

/** 1 when the text ends with "#### <ground truth>", else 0. */
export const scoreFinalAnswer: RewardFunction = (_source, solution, groundTruth) => {
  const answer = extractFinalAnswer(solution);
  const expected = String(groundTruth).replace(/,/g, "");
  const right = answer !== null && (answer === expected || Number(answer) === Number(expected));
  return { score: right ? 1 : 0, acc: right ? 1 : 0 };
};

registerReward("calculator", scoreFinalAnswer);
registerReward("openai/gsm8k", scoreFinalAnswer);

/** Routes by `data_source`. @throws ConfigError when no reward is registered for a source. */
export const routeReward: RewardFunction = (dataSource, ...rest) => {
  const reward = rewards.get(dataSource);
  if (reward) return reward(dataSource, ...rest);
  throw new ConfigError("has no reward function", {
    code: "config/unknown-data-source",
    subject: `data_source "${dataSource}"`,
    expected: [...rewards.keys()].join(", "),
    remedy: "set custom_reward_function.path, or use one of these data sources",
  });
};
