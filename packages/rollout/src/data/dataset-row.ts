import { type ChatMessage, DataError, type LoadedImage } from "@cria/core";
import { describeIssue, withoutLibraryTexts } from "@cria/core/internal";
import { z } from "zod";
import { copyData } from "../copy-data.js";
import { messageSchema } from "./message-schema.js";
import { haveImages, placeImages, readImages } from "./place-images.js";
import { isSampleCount, MOST_SAMPLES } from "./row-samples.js";

const kwargs = z
  .record(z.string(), z.unknown())
  .nullish()
  .transform((given) => given ?? {});

const toolKwargs = z.looseObject({
  create_kwargs: kwargs,
  execute_kwargs: kwargs,
  calc_reward_kwargs: kwargs,
  release_kwargs: kwargs,
});

const index = z.union([z.number(), z.string(), z.bigint().transform(Number)]).nullish();

const extraInfo = z.looseObject({
  index,
  need_tools_kwargs: z.boolean().nullish(),
  /** Tools available to this row's conversations, in this order. Null or empty: all. */
  tool_selection: z.array(z.string()).nullish(),
  /**
   * Creation arguments by tool. An entry of null counts as absent: Parquet has a column for each tool that any row
   * names.
   */
  tools_kwargs: z
    .record(z.string(), toolKwargs.nullable())
    .nullish()
    .transform((given) => (given ? (dropNulls(given) as Record<string, z.infer<typeof toolKwargs>>) : given)),
  interaction_kwargs: z.record(z.string(), z.unknown()).nullish(),
});

/** Media that no policy can see: only an empty list is accepted. */
const videos = z
  .unknown()
  .refine(
    (given) => given === null || (Array.isArray(given) && given.length === 0),
    "nothing: a policy sees texts and images, and would be trained to answer without seeing it",
  )
  .optional();

/** Parquet has whole numbers as bigints, and null for rows that do not say. */
const samples = z
  .unknown()
  .transform((given) => (typeof given === "bigint" ? Number(given) : (given ?? undefined)))
  .refine(
    (given) => given === undefined || isSampleCount(given),
    `a whole number from 1 to ${MOST_SAMPLES}, or null: as many as the run says`,
  )
  .optional();

const rowSchema = z.looseObject({
  prompt: z.array(messageSchema).min(1),
  data_source: z.string(),
  reward_model: z.looseObject({ style: z.string().nullish(), ground_truth: z.unknown() }).nullish(),
  extra_info: extraInfo.nullish().transform((given) => given ?? extraInfo.parse({})),
  agent_name: z.string().nullish(),
  __rollout_n__: samples,
  images: z.unknown().optional(),
  videos,
});

/** One row of a dataset, in verl's format. */
export interface DatasetRow {
  /** Index among all rows of its dataset, before filtering. */
  index: number;
  /**
   * Identifies the prompt in groups, seeds and logs: `data_source`, file and position in the file. Unique in a
   * dataset, and stable over runs on the same files, whatever `extra_info.index` says.
   */
  uid: string;
  /** File and line or row, for error messages. */
  place: string;
  /** Messages of the prompt. Images are references here, loaded when a conversation begins. */
  prompt: ChatMessage[];
  /** Base folder of relative image paths; left out: paths are refused. */
  folder?: string;
  /** Images by the paths that tools load them by; used if the folder lies on another machine. */
  files?: Readonly<Record<string, LoadedImage>>;
  /** Selects the reward function: the column `data_source`, or `data.reward_fn_key`. */
  dataSource: string;
  groundTruth: unknown;
  extraInfo: z.infer<typeof extraInfo>;
  agentName?: string;
  /** Conversations of this row, from 1 to 4096: the column `__rollout_n__`. Left out: as many as the run says. */
  samples?: number;
}

export interface ParseRowOptions {
  /** Column of the messages; default "prompt". */
  promptKey?: string;
  /** Column that selects the reward function; default "data_source". */
  rewardFnKey?: string;
  /** Column of images; default "images". */
  imageKey?: string;
  /** Column of videos, which must be empty; default "videos". */
  videoKey?: string;
  /** Base folder of relative image paths; default: paths are refused. */
  folder?: string;
  /** Default of `need_tools_kwargs` for rows whose `extra_info` lacks it; default false. */
  needToolsKwargs?: boolean;
  /** The row's position, as part of its uid; default: its index. */
  position?: string;
}

/** @throws DataError naming file, row, column, what was expected and what was found. */
export function parseRow(value: unknown, index: number, place: string, options: ParseRowOptions = {}): DatasetRow {
  const columns = { prompt: options.promptKey, data_source: options.rewardFnKey };
  const media = { images: options.imageKey, videos: options.videoKey };
  const record = { ...(value as Record<string, unknown>) };
  const named = Object.entries({ ...columns, ...media }).filter(([name, key]) => key !== undefined && key !== name);
  for (const [name, key] of named) record[name] = (value as Record<string, unknown> | null)?.[key!];
  const result = rowSchema.safeParse(typeof value === "object" && value !== null ? record : value, withoutLibraryTexts);
  if (!result.success)
    throw describeBadRow(result.error.issues[0]!, record, place, new Map(named as [string, string][]), value);
  const row = result.data;
  const extraInfo = row.extra_info;
  const subject = `${place}, column "${options.imageKey ?? "images"}"`;
  const prompt = placeImages(row.prompt, readImages(row.images, subject), subject);
  return {
    index,
    uid: `${row.data_source}/${options.position ?? index}`,
    place,
    prompt,
    ...(options.folder !== undefined && haveImages(prompt) ? { folder: options.folder } : {}),
    dataSource: row.data_source,
    groundTruth: row.reward_model?.ground_truth,
    extraInfo: { ...extraInfo, need_tools_kwargs: extraInfo.need_tools_kwargs ?? options.needToolsKwargs ?? false },
    agentName: row.agent_name ?? undefined,
    ...(row.__rollout_n__ === undefined ? {} : { samples: row.__rollout_n__ as number }),
  };
}

/**
 * Copies a row for one conversation: changes by tools, interactions and agent loops affect neither other
 * conversations nor the dataset. Functions and class instances from a user's dataset stay shared.
 * @throws DataError naming the row when one of its getters throws, or when it is nested too deeply.
 */
export function copyRow(row: DatasetRow): DatasetRow {
  try {
    return copyData(row);
  } catch (cause) {
    throw new DataError("cannot be copied for a conversation", {
      code: "data/bad-row",
      subject: row.place,
      expected: "values that can be copied: no getter that throws, and no nesting of thousands of levels",
      received: (cause as Error)?.message ?? typeof cause,
      remedy: "make the values plain data in data.map or data.custom_cls",
      cause,
    });
  }
}

function describeBadRow(
  issue: z.core.$ZodIssue,
  record: Record<string, unknown>,
  place: string,
  named: ReadonlyMap<string, string>,
  value: unknown,
): DataError {
  const [column, ...rest] = issue.path.map(String);
  const isMissing = column !== undefined && rest.length === 0 && record[column] === undefined;
  if (isMissing) return describeMissingColumn(named.get(column) ?? column, column, value as object, place);
  const path = column === undefined ? "row" : [named.get(column) ?? column, ...rest].join(".");
  const received = issue.path.reduce<unknown>((v, key) => (v as Record<PropertyKey, unknown> | null)?.[key], record);
  return new DataError("is not a valid row", {
    code: "data/bad-row",
    subject: `${place}, column "${path}"`,
    expected: describeIssue(rowSchema, issue),
    received: describeValue(received),
    remedy:
      column === "videos" || /"type":"video/.test(describeValue(received))
        ? "leave such rows out (data.custom_cls with mapRecord), or drop the column"
        : "see docs/rows.md for the columns of a row",
  });
}

/** Error for a dataset whose columns have other names. */
function describeMissingColumn(name: string, column: string, value: object, place: string): DataError {
  const columns = Object.keys(value);
  const key = { prompt: "data.prompt_key", data_source: "data.reward_fn_key" }[column];
  const given = columns.filter((known) => /^[A-Za-z_]\w*$/.test(known)).slice(0, 2);
  return new DataError(`has no column "${name}"`, {
    code: "data/missing-column",
    subject: place,
    expected: "columns prompt and data_source, and reward_model for what is judged by a truth",
    received: `columns ${columns.join(", ") || "none"}`,
    remedy:
      `make rows of the records by a function of yours: data.map: ./map.ts#row, for example ` +
      `export const row = ({ ${given.join(", ")} }) => ({ data_source: "mine", prompt: [{ role: "user", content: ${given[0] ?? '"..."'} }], ` +
      `reward_model: { ground_truth: ${given[1] ?? '"..."'} } })${key ? `; or name the column: ${key}` : ""}`,
  });
}

function describeValue(value: unknown): string {
  const text = JSON.stringify(showBytes(value, 0));
  return text?.slice(0, 200) ?? "nothing";
}

/** Replaces values that JSON cannot hold, or that are nested too deeply, by texts. */
function showBytes(value: unknown, level: number): unknown {
  if (typeof value === "bigint") return String(value);
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  if (level === 20) return "(nested deeply)";
  const inside = (entry: unknown) => showBytes(entry, level + 1);
  if (Array.isArray(value)) return value.map(inside);
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, inside(entry)]));
}

function dropNulls<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)) as T;
}
