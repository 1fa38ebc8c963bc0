import { dirname } from "node:path";
import { type ChatMessage, DataError, type LoadedImage, listImages, type ToolSchema } from "@cria/core";
import { describeIssue, withoutLibraryTexts } from "@cria/core/internal";
import type { Filter } from "@cria/records";
import { type DatasetRecord, type ImageAccess, mapRecord, type RowMap, readRecords } from "@cria/rollout";
import { loadMessages, messageSchema, placeImages, readImages } from "@cria/rollout/internal";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { ToolParser } from "@cria/tools";
import { z } from "zod";
import { readDumps } from "./read-dumps.js";

/** A tokenized conversation; the mask is 1 on assistant tokens, and as long as the tokens. */
export interface SftExample {
  tokenIds: Int32Array;
  lossMask: Uint8Array;
  /** Its images; their ids stay valid as long as these objects. */
  images?: readonly LoadedImage[];
}

export interface ReadExamplesOptions {
  messagesKey: string;
  toolsKey: string;
  /** Column of images; default "images". */
  imagesKey?: string;
  /** Limits of images, and the function that fetches web addresses. */
  images?: ImageAccess;
  /** Maximum number of tokens; longer conversations are left out. */
  maxLength: number;
  /** Names of options in errors; default: those of `cria sft`. */
  keys?: { keep: string; maxLength: string };
  /** Maps each record to a conversation; default: the records are conversations. */
  map?: RowMap;
  /** Selects conversations of dumps; default: all that ended by themselves. */
  keep?: Filter | null;
  /** Parser of the model's tool calls, for dumps; default: no calls. */
  parse?: ToolParser;
  onProgress?: (done: number, total: number) => void;
}

const conversation = z
  .array(messageSchema)
  .min(1)
  .refine((messages) => messages.some((message) => message.role === "assistant"), "at least one assistant message");
const toolList = z.array(z.looseObject({ function: z.looseObject({ name: z.string() }) })).nullish();

const sftNames = { keep: "data.keep", maxLength: "data.max_length" };

/**
 * Reads conversations and tokenizes them with masks. `dropped` counts conversations that were too long; `unsplit`
 * those in which users or tools spell control tokens and the template does not show where, so that they become
 * control tokens; `unusable` those of dumps that were filtered out, failed, or were cut in their last turn.
 * @throws DataError naming file, line and column of a malformed row, or when no conversation fits.
 */
export async function readExamples(
  files: readonly string[],
  tokenizer: DeltaTokenizer,
  options: ReadExamplesOptions,
): Promise<{ examples: SftExample[]; dropped: number; unsplit: number; unusable: number }> {
  const read = await Promise.all(files.map(async (path) => ({ path, records: await readRecords(path) })));
  const folders = new Map(
    read.flatMap(({ path, records }) => records.map(({ place }) => [place, dirname(path)] as const)),
  );
  const { records, unusable } = options.map
    ? {
        records: await mapRecords(
          read.flatMap((file) => file.records),
          options.map,
        ),
        unusable: 0,
      }
    : await readDumps(read, tokenizer, options);
  const examples: SftExample[] = [];
  let dropped = 0;
  let unsplit = 0;
  for (const [i, { value, place }] of records.entries()) {
    const asked = check(conversation, value, options.messagesKey, place);
    const messages = await showImages(asked, value, place, { ...options, folder: folders.get(place) });
    check(toolList, value, options.toolsKey, place);
    // Unchanged, even in the order of keys, because templates print them.
    const tools = (readColumn(value, options.toolsKey) ?? []) as ToolSchema[];
    let isUnsplit = false;
    const { tokenIds, mask } = tokenizer.encodeMessagesWithMask(messages, tools, () => {
      isUnsplit = true;
    });
    if (isUnsplit) unsplit++;
    const images = messages.flatMap(({ content }) => listImages(content).map(({ image }) => image as LoadedImage));
    const held = images.length > 0 ? { images } : {};
    if (tokenIds.length <= options.maxLength) examples.push({ tokenIds, lossMask: mask, ...held });
    else dropped++;
    if (i % 100 === 99 || i + 1 === records.length) {
      options.onProgress?.(i + 1, records.length);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  if (examples.length > 0) return { examples, dropped, unsplit, unusable };
  const { keys = sftNames } = options;
  const counts = [
    ...(unusable > 0 ? [`${unusable} that are not kept, failed, or were cut in their last turn`] : []),
    ...(dropped > 0 ? [`${dropped} longer ones`] : []),
  ];
  throw new DataError("holds no conversation to learn", {
    code: "data/empty",
    subject: files.join(", "),
    expected: `conversations of at most ${options.maxLength} tokens (${keys.maxLength})${options.keep ? ` that ${keys.keep} chooses` : ""}`,
    received: counts.join(", ") || "no rows",
  });
}

/** Puts the row's loaded images into its messages. */
function showImages(
  messages: readonly ChatMessage[],
  row: unknown,
  place: string,
  { imagesKey = "images", images, folder }: ReadExamplesOptions & { folder?: string },
): Promise<readonly ChatMessage[]> {
  const subject = `${place}, column "${imagesKey}"`;
  const placed = placeImages(messages, readImages(readColumn(row, imagesKey), subject), subject);
  return loadMessages(placed, { ...images, folder, subject: `image of ${place}` });
}

async function mapRecords(records: readonly DatasetRecord[], map: RowMap): Promise<DatasetRecord[]> {
  const mapped: DatasetRecord[] = [];
  for (const record of records) {
    const value = await mapRecord(record, map);
    if (value !== null) mapped.push({ value, place: record.place });
  }
  return mapped;
}

function check<T extends z.ZodType>(schema: T, row: unknown, column: string, place: string): z.output<T> {
  const value = readColumn(row, column);
  const result = schema.safeParse(value, withoutLibraryTexts);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const received = issue.path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)?.[key], value);
  throw new DataError("is not a valid conversation", {
    code: "data/bad-row",
    subject: `${place}, column "${[column, ...issue.path].map(String).join(".")}"`,
    expected: describeIssue(schema, issue),
    received: JSON.stringify(received)?.slice(0, 200) ?? "nothing",
    remedy:
      value === undefined
        ? "name the column (data.messages_key), or a function that makes conversations of the records: data.map: ./map.ts#row"
        : undefined,
  });
}

function readColumn(row: unknown, column: string): unknown {
  return typeof row === "object" && row !== null ? (row as Record<string, unknown>)[column] : undefined;
}
