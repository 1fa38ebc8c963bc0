import type { ChatMessage } from "@cria/core";
import { type DatasetRow, parseRow, type RewardFunction } from "@cria/rollout";
import type { Episode, TaskDefinition, TaskReward } from "./task-definition.js";

/** A row of the user's as rollouts take it; one of `loadDataset` stays what it is. @throws DataError */
export function toDatasetRow<Row extends object>(
  row: Row,
  index: number,
  { prompt, system, truth, name = "task", interaction }: TaskDefinition<Row>,
): DatasetRow {
  if (isDatasetRow(row)) return { ...row, extraInfo: { ...row.extraInfo, row } };
  const given = row as Record<string, unknown>;
  const messages = toMessages(prompt ? prompt(row) : (given.prompt ?? given.messages ?? given.question), system);
  const groundTruth = truth ? truth(row) : (given.truth ?? given.answer);
  const kwargs = typeof interaction === "object" ? { interaction_kwargs: { name: interaction.name } } : {};
  const info = (given.extra_info ?? {}) as Record<string, unknown>;
  const record = {
    data_source: given.data_source ?? name,
    prompt: messages,
    reward_model: given.reward_model ?? { ground_truth: groundTruth },
    extra_info: { index, ...kwargs, ...info, row },
    agent_name: given.agent_name,
  };
  // Seeds are made of the place: that of the same row in a file of rows.
  return parseRow(record, index, `rows[${index}]`, { position: `0:${index}` });
}

function isDatasetRow(row: object): row is DatasetRow {
  const { uid, dataSource, extraInfo, prompt } = row as Partial<DatasetRow>;
  return typeof uid === "string" && typeof dataSource === "string" && Array.isArray(prompt) && extraInfo !== undefined;
}

/** What is no text passes as it is: the row's check names what is wrong with it. */
function toMessages(prompt: unknown, system: string | undefined): unknown {
  const messages = typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;
  if (system === undefined || !Array.isArray(messages) || messages[0]?.role === "system") return messages;
  return [{ role: "system", content: system }, ...(messages as ChatMessage[])];
}

/** A task's reward as the rollouts call it. */
export function toRewardFunction<Row extends object>(reward: TaskReward<Row>): RewardFunction {
  return async (_source, text, _truth, info) => {
    const { messages, numTurns, finishReason, toolScore, interactionScore } = info;
    const last = messages.findLast(({ role }) => role === "assistant")?.content ?? "";
    const episode: Episode<Row> = {
      answer: findAnswer(last),
      text,
      row: info.row as Row,
      messages,
      turns: numTurns,
      finishReason,
      toolScore,
      interactionScore,
    };
    const result = await reward(episode);
    return typeof result === "boolean" ? Number(result) : result;
  };
}

function findAnswer(message: string): string {
  const mark = message.lastIndexOf("####");
  return message.slice(mark < 0 ? 0 : mark + "####".length).trim();
}
