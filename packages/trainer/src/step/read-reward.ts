import { DataError, type Trajectory } from "@cria/core";

/**
 * Reads the number that a config names: seq_reward (null), score, or a number that the reward function returned beside
 * the score.
 * @param key of the config, for the error.
 * @throws DataError when the trajectory has no such number.
 */
export function readReward(
  { reward, rewards, extraFields, rowIndex }: Trajectory,
  name: string | null,
  key: string,
): number {
  if (name === null || name === "seq_reward" || name === "seq_final_reward") return reward;
  if (name === "score") return rewards.score!;
  const value = extraFields[name];
  if (typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value))) return Number(value);
  throw new DataError("is no number of this conversation", {
    code: "data/bad-metric",
    subject: `${key} "${name}" of row ${rowIndex}`,
    expected: "seq_reward, seq_final_reward, score, or a number that the reward function returns beside its score",
    received: value === undefined ? `only ${["score", ...Object.keys(extraFields)].join(", ")}` : String(value),
  });
}
