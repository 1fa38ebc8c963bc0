/** The model's tools in a task of pictures. */
export const visionToolsTemplate = `tools:
  # The model asks for a region of the row's picture by its corners, and sees it enlarged. coordinates: thousandths counts in
  # thousandths of width and height, as some models were taught; min_size is the shortest side of a region, in pixels.
  - class_name: "@cria/tools#ImageZoomTool"
    config: { coordinates: pixels, min_size: 28, scale: 3 }
`;

/** One word is the answer. */
export const visionRewardTemplate = `import { findLastAnswer, type RewardFunction } from "cria";

const colours = ["red", "green", "blue", "yellow"];

/**
 * Judges one conversation; config.yaml names it. groundTruth is the row's reward_model.ground_truth. 1 if the last
 * answer names the colour and no other, 0.1 if the model at least zoomed in.
 */
export const computeScore: RewardFunction = (_dataSource, _solutionText, groundTruth, { messages }) => {
  const answer = findLastAnswer(messages).toLowerCase();
  const named = colours.filter((colour) => answer.includes(colour));
  const solved = named.length === 1 && named[0] === groundTruth;
  const looked = messages.some(({ role }) => role === "tool");
  // acc tells success from failure; other numbers next to the score become metrics.
  return { score: solved ? 1 : looked ? 0.1 : 0, acc: solved ? 1 : 0 };
};
`;
