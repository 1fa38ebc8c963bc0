import { type ChatMessage, contentText, listImages } from "@cria/core";
import { isLoaded } from "@cria/core/internal";
import type { UnjudgedTrajectory } from "@cria/episodes";
import { copyData } from "../copy-data.js";
import type { DatasetRow } from "../data/dataset-row.js";
import type { RewardRequest } from "./reward-manager.js";

/** A trajectory in the form that reward functions receive. */
export function makeRewardRequest(row: DatasetRow, trajectory: UnjudgedTrajectory, order: number): RewardRequest {
  const { messages, extraFields, scoreError } = trajectory;
  const solutionText = messages
    .slice(countPromptMessages(row, messages))
    .filter((message) => message.role === "assistant")
    .map((message) => contentText(message.content))
    .join("\n");
  const images = messages.flatMap(({ content }) => listImages(content).map(({ image }) => image)).filter(isLoaded);
  return {
    dataSource: row.dataSource,
    solutionText,
    groundTruth: row.groundTruth,
    extraInfo: {
      ...row.extraInfo,
      ...(typeof extraFields.full_prompt === "string" ? { full_prompt: extraFields.full_prompt } : {}),
      messages: copyData(messages),
      numTurns: trajectory.numTurns,
      finishReason: trajectory.finishReason,
      toolRewards: trajectory.toolRewards,
      turnScores: trajectory.turnScores,
      interactionScore: trajectory.interactionScore,
      toolScore: trajectory.toolScore,
      ...(images.length > 0 ? { images } : {}),
    },
    responseLength: trajectory.tokenIds.length - trajectory.promptLength,
    loopScore: trajectory.score,
    ...(scoreError === undefined ? {} : { scoreError }),
    uid: row.uid,
    place: nameSample(row, trajectory.sampleIndex),
    order,
  };
}

/** Number of messages that are the row's prompt; 0 if an agent began with others. */
export function countPromptMessages({ prompt }: Pick<DatasetRow, "prompt">, messages: readonly ChatMessage[]): number {
  const isPrompt = prompt.every(
    ({ role, content }, i) => messages[i]?.role === role && showText(messages[i].content) === showText(content),
  );
  return isPrompt ? prompt.length : 0;
}

/** A content's text with a placeholder per image: a row has references to images, a conversation the loaded ones. */
function showText(content: ChatMessage["content"]): string {
  return contentText(content, () => "\0");
}

/** Names a sample in errors and warnings. */
export function nameSample(row: DatasetRow, sampleIndex: number): string {
  return `row ${row.index} (${row.place}, data_source "${row.dataSource}", uid "${row.uid}"), sample ${sampleIndex}`;
}
