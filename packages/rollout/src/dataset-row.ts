import { type ChatMessage, DataError } from "@cria/core";
import { z } from "zod";

const message = z.looseObject({
  role: z.enum(["system", "user", "assistant", "tool"]),
  content: z.string().default(""),
});

const kwargs = z.record(z.string(), z.unknown()).default({});

const rowSchema = z.looseObject({
  prompt: z.array(message).min(1),
  data_source: z.string(),
  reward_model: z.looseObject({ style: z.string().optional(), ground_truth: z.unknown() }).optional(),
  extra_info: z
    .looseObject({
      index: z.union([z.number(), z.bigint().transform(Number)]).optional(),
      need_tools_kwargs: z.boolean().optional(),
      tools_kwargs: z
        .record(
          z.string(),
          z
            .looseObject({
              create_kwargs: kwargs,
              execute_kwargs: kwargs,
              calc_reward_kwargs: kwargs,
              release_kwargs: kwargs,
            })
            .nullable(),
        )
        .nullish(),
      interaction_kwargs: kwargs.nullish(),
    })
    .default({}),
  agent_name: z.string().nullish(),
});

/** One row of a dataset, in the format that the field's trainers use. */
export interface DatasetRow {
  /** Position in its dataset. */
  index: number;
  /** Names the prompt in groups and logs. */
  uid: string;
  prompt: ChatMessage[];
  dataSource: string;
  groundTruth: unknown;
  extraInfo: z.infer<typeof rowSchema>["extra_info"];
  agentName?: string;
}

/** @throws DataError naming file, row, column, what was expected and what was found. */
export function parseRow(value: unknown, index: number, place: string, promptKey = "prompt"): DatasetRow {
  const record = value as Record<string, unknown>;
  const result = rowSchema.safeParse(promptKey === "prompt" ? record : { ...record, prompt: record?.[promptKey] });
  if (!result.success) {
    const issue = result.error.issues[0]!;
    const column = issue.path.join(".") || "row";
    throw new DataError("is not a valid row", {
      code: "data/bad-row",
      subject: `${place}, column "${column}"`,
      expected: issue.message,
      received:
        JSON.stringify(
          issue.path.reduce<unknown>((v, key) => (v as Record<PropertyKey, unknown>)?.[key], value),
        )?.slice(0, 200) ?? "nothing",
      remedy: "see the README of @cria/rollout for the columns of a row",
    });
  }
  const row = result.data;
  return {
    index,
    uid: String(row.extra_info.index ?? index),
    prompt: row.prompt as ChatMessage[],
    dataSource: row.data_source,
    groundTruth: row.reward_model?.ground_truth,
    extraInfo: row.extra_info,
    agentName: row.agent_name ?? undefined,
  };
}
