import { type ChatMessage, DataError, findLastAnswer } from "@cria/core";
import { previewValue } from "@cria/core/internal";
import type { DatasetRow, RewardFunction } from "@cria/rollout";
import { isSampleCount, MOST_SAMPLES, parseRow } from "@cria/rollout/internal";

import type { Episode, TaskDefinition, TaskReward } from "./task-definition.js";

/**
 * Converts a task's row to one for rollouts. A row of `loadDataset` or of a file keeps its uid, and its columns
 * unless the task overrides them.
 * @param name name of the rows in errors: "rows", "validation.rows".
 * @throws DataError naming the row and the mistake.
 */
export function toDatasetRow<Row extends object>(
  row: Row,
  index: number,
  definition: TaskDefinition<Row>,
  name = "rows",
): DatasetRow {
  const known = isDatasetRow(row) ? row : null;
  const given = known ? describeRow(known) : (row as Record<string, unknown>);
  const place = known?.place ?? `${name}[${index}]`;
  const { prompt, system, truth, samples, interaction, agent } = definition;
  const messages = prompt ? callFor("prompt", prompt, row, place) : (given.prompt ?? given.messages ?? given.question);
  // An agent makes its own prompts.
  const asked = agent ? describeForAgent(messages) : messages;
  const groundTruth = truth ? callFor("truth", truth, row, place) : (given.truth ?? given.answer);
  const info = (given.extra_info ?? {}) as Record<string, unknown>;
  const kwargs = info.interaction_kwargs as object | undefined;
  const parsed = parseRow(
    {
      data_source: given.data_source ?? definition.name ?? "task",
      prompt: toMessages(asked, { given, system, place, isMade: prompt !== undefined }),
      reward_model: (truth ? undefined : given.reward_model) ?? { ground_truth: groundTruth },
      extra_info: {
        index,
        ...info,
        ...(typeof interaction === "object" ? { interaction_kwargs: { name: interaction.name, ...kwargs } } : {}),
        row,
      },
      agent_name: given.agent_name,
      __rollout_n__: samples ? checkSamples(callFor("samples", samples, row, place), place) : given.__rollout_n__,
      // Images of a row that was already read are in its messages.
      images: known ? undefined : given.images,
    },
    index,
    place,
    // Seeds depend on the position, which equals that of the same row in a file.
    { position: `0:${index}`, folder: known?.folder ?? process.cwd() },
  );
  return known ? { ...parsed, index: known.index, uid: known.uid } : parsed;
}

/**
 * Makes uids unique, because groups and random draws depend on them. Rows of two datasets may have the same uid; a
 * later row then gets its occurrence number as a suffix.
 */
export function separateUids(rows: readonly DatasetRow[]): DatasetRow[] {
  const counts = new Map<string, number>();
  return rows.map((row) => {
    const count = (counts.get(row.uid) ?? 0) + 1;
    counts.set(row.uid, count);
    return count === 1 ? row : { ...row, uid: `${row.uid}#${count}` };
  });
}

function isDatasetRow(row: object): row is DatasetRow {
  const { uid, dataSource, extraInfo, prompt } = row as Partial<DatasetRow>;
  return typeof uid === "string" && typeof dataSource === "string" && Array.isArray(prompt) && extraInfo !== undefined;
}

/** The columns that a row was read from. */
function describeRow({
  dataSource,
  prompt,
  groundTruth,
  extraInfo,
  agentName,
  samples,
}: DatasetRow): Record<string, unknown> {
  return {
    data_source: dataSource,
    prompt,
    reward_model: { ground_truth: groundTruth },
    extra_info: extraInfo,
    agent_name: agentName,
    __rollout_n__: samples,
  };
}

/** Expected results of a task's functions, for errors. */
const saidOfRows = {
  prompt: "a text or messages",
  truth: "the right answer",
  samples: `a whole number from 1 to ${MOST_SAMPLES}, or undefined: as many as the run says`,
};

function checkSamples(samples: unknown, place: string): unknown {
  if (samples === undefined || isSampleCount(samples)) return samples;
  throw new DataError("is no number of conversations", {
    code: "data/bad-row",
    subject: `defineTask: samples of ${place}`,
    expected: saidOfRows.samples,
    received: previewValue(samples),
  });
}

function callFor<Row>(key: keyof typeof saidOfRows, call: (row: Row) => unknown, row: Row, place: string): unknown {
  try {
    return call(row);
  } catch (cause) {
    throw new DataError("throws", {
      code: "data/bad-row",
      subject: `defineTask: ${key} of ${place}`,
      expected: saidOfRows[key],
      received: cause instanceof Error ? cause.message : previewValue(cause),
      cause,
    });
  }
}

/** Prompt of an agent's row for dumps, if it has one. */
function describeForAgent(messages: unknown): unknown {
  return typeof messages === "string" || (Array.isArray(messages) && messages.length > 0) ? messages : "(the agent's)";
}

interface GivenPrompt {
  given: Record<string, unknown>;
  system: string | undefined;
  place: string;
  /** True if the task's `prompt` function made it. */
  isMade: boolean;
}

/** The messages themselves are checked with the row. */
function toMessages(prompt: unknown, { given, system, place, isMade }: GivenPrompt): readonly ChatMessage[] {
  if (typeof prompt !== "string" && !(Array.isArray(prompt) && prompt.length > 0)) {
    throw new DataError(isMade ? "is no prompt" : "has no prompt", {
      code: "data/bad-row",
      subject: isMade ? `defineTask: prompt of ${place}` : place,
      expected: isMade ? "a text or messages" : "a text or messages in prompt, messages or question",
      received: isMade || prompt !== undefined ? previewValue(prompt) : `only ${Object.keys(given).join(", ") || "{}"}`,
      remedy: isMade ? undefined : "say what is asked: defineTask({ rows, prompt: (row) => ... })",
    });
  }
  const messages = typeof prompt === "string" ? [{ role: "user" as const, content: prompt }] : prompt;
  if (system === undefined || messages[0]?.role === "system") return messages;
  return [{ role: "system", content: system }, ...messages];
}

/** Adapts a task's reward to rollouts. */
export function toRewardFunction<Row extends object>(reward: TaskReward<Row>): RewardFunction {
  return async (_source, text, _truth, info) => {
    const { messages, numTurns, finishReason, toolScore, interactionScore, images = [] } = info;
    const last = findLastAnswer(messages);
    const episode: Episode<Row> = {
      answer: findAnswer(last),
      text,
      row: info.row as Row,
      messages,
      images,
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
