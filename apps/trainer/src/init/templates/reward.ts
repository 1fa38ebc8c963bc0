/** Reward for tasks around existing tools: the rows ask for a call of the tool that is their ground truth. */
export const rewardTemplate = `import { contentText, type RewardFunction } from "cria";

/**
 * Judges one conversation; config.yaml names it. groundTruth is the row's reward_model.ground_truth, extraInfo.messages
 * the whole conversation, solutionText the sampled text. It may be async, and may throw: the conversation is then left
 * out.
 *
 * FILL IN the criteria of a good answer. Until then: 1 if the tool that the row asks for has answered, 0.5 if its
 * answer was an error, 0.2 if another tool was called, 0 if none was. Prefer many small steps to one far goal: a model
 * learns from the differences between its answers to one prompt.
 */
export const computeScore: RewardFunction = (_dataSource, _solutionText, groundTruth, { messages }) => {
  const answers = messages.filter(({ role }) => role === "tool");
  const wanted = answers.filter(({ name }) => name === groundTruth);
  const solved = wanted.some(({ content }) => !contentText(content).startsWith("error"));
  const score = solved ? 1 : wanted.length > 0 ? 0.5 : answers.length > 0 ? 0.2 : 0;
  // acc tells success from failure; other numbers next to the score become metrics.
  return { score, acc: solved ? 1 : 0 };
};
`;
