import { createHash } from "node:crypto";
import { open, readFile, stat } from "node:fs/promises";
import { setImmediate as yieldToOthers } from "node:timers/promises";
import { writeFileAtomically } from "@cria/core";
import { z } from "zod";
import type { IndexRow } from "./index-row.js";

/** Changes with the rows' format: indexes of other versions are rebuilt. */
const VERSION = 1;
/** Bytes at the beginning, and before the end of the indexed part, that identify a file. */
const SAMPLE = 4096;
/** Rows that are read or written at once. */
const SLICE = 2000;

/** The header of an index's file, which identifies its dump. */
const headerSchema = z.object({
  version: z.literal(VERSION),
  fields: z.array(z.string()),
  /** Bytes of the dump that are indexed, and its lines. */
  indexed: z.int().nonnegative(),
  lines: z.int().nonnegative(),
  /** Modification time of the dump when it was indexed. */
  modified: z.number(),
  hash: z.string(),
});

/** The indexed part of a dump. */
export interface IndexState {
  rows: IndexRow[];
  indexed: number;
  lines: number;
  modified: number;
  hash: string;
}

export function nameIndex(dump: string): string {
  return `${dump}.index`;
}

/** A row is a list of values: names would double the file. */
const FIELDS = [
  ...(["line", "at", "length", "uid", "sample", "reward", "success", "advantage", "finish", "sampled"] as const),
  ...(["tokens", "turns", "toolCalls", "toolErrors", "mismatch", "failed", "place", "dataSource", "step"] as const),
  ...(["row", "score", "scoreBefore", "promptLength", "unknownTools", "invalidCalls", "invalidArguments"] as const),
  ...(["title", "hasSchemas"] as const),
] satisfies (keyof IndexRow)[];

/**
 * Writes the index next to its dump. In a folder that cannot be written there is none: then each process builds it
 * once.
 */
export async function writeIndex(dump: string, { rows, ...header }: IndexState): Promise<void> {
  const parts = [`${JSON.stringify({ version: VERSION, fields: FIELDS, ...header })}\n`];
  for (let start = 0; start < rows.length; start += SLICE) {
    const lines = rows.slice(start, start + SLICE).map((row) => JSON.stringify(FIELDS.map((field) => row[field])));
    parts.push(`${lines.join("\n")}\n`);
    await yieldToOthers();
  }
  await writeFileAtomically(nameIndex(dump), parts.join("")).catch(() => undefined);
}

/** The index of an earlier process, as far as it is still valid; null: none. */
export async function readIndex(dump: string): Promise<IndexState | null> {
  try {
    const text = await readFile(nameIndex(dump), "utf8");
    const end = text.indexOf("\n");
    const { fields, version: _, ...header } = headerSchema.parse(JSON.parse(text.slice(0, end)));
    if (fields.join() !== FIELDS.join() || !(await isOf(dump, header))) return null;
    const rows: IndexRow[] = [];
    for (let at = end + 1; at < text.length; ) {
      const feed = text.indexOf("\n", at);
      if (feed < 0) return null;
      rows.push(toRow(JSON.parse(text.slice(at, feed))));
      at = feed + 1;
      if (rows.length % SLICE === 0) await yieldToOthers();
    }
    return { rows, ...header };
  } catch {
    return null;
  }
}

function toRow(values: unknown[]): IndexRow {
  if (values.length !== FIELDS.length) throw new Error("is no row");
  return Object.fromEntries(FIELDS.map((field, i) => [field, values[i]])) as unknown as IndexRow;
}

async function isOf(dump: string, { indexed, modified, hash }: Omit<IndexState, "rows">): Promise<boolean> {
  const { size, mtimeMs } = await stat(dump);
  if (size < indexed || (size === indexed && mtimeMs !== modified)) return false;
  return (await hashDump(dump, indexed)) === hash;
}

/**
 * Hash of the first and the last bytes of the indexed part.
 * @throws errors of the file system.
 */
export async function hashDump(dump: string, indexed: number): Promise<string> {
  const file = await open(dump, "r");
  try {
    const hash = createHash("sha256");
    const buffer = Buffer.alloc(SAMPLE);
    for (const at of [0, Math.max(0, indexed - SAMPLE)]) {
      const { bytesRead } = await file.read(buffer, 0, Math.min(SAMPLE, indexed), at);
      hash.update(buffer.subarray(0, bytesRead));
    }
    return hash.digest("hex").slice(0, 32);
  } finally {
    await file.close();
  }
}
