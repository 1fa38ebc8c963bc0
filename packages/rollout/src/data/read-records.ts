import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { DataError, readOrThrow } from "@cria/core";
import { readParquet } from "./read-parquet.js";

/** One record as it stands in its file. */
export interface DatasetRecord {
  value: unknown;
  /** File and line or row, for error messages. */
  place: string;
}

/**
 * The raw records of one Parquet, JSONL or JSON file. 64-bit integers of Parquet become numbers where numbers hold them
 * exactly; bytes stay bytes.
 * @throws DataError when the file is missing, damaged or of another kind.
 */
export async function readRecords(file: string): Promise<DatasetRecord[]> {
  const kind = extname(file).toLowerCase();
  const expected = "a readable Parquet, JSONL or JSON file";
  const read = <T>(work: () => T) => readOrThrow(work, DataError, { subject: file, expected });
  if (kind === ".parquet") {
    const records = await read(() => readParquet(file));
    return records.map((value, i) => ({ value: simplify(value), place: `${file}, row ${i + 1}` }));
  }
  if (kind === ".jsonl") return parseLines(decodeText(await read(() => readFile(file)), file), file);
  if (kind === ".json") {
    const text = decodeText(await read(() => readFile(file)), file);
    const rows = read(() => parseArray(text));
    return rows.map((value, i) => ({ value, place: `${file}, row ${i + 1}` }));
  }
  throw new DataError("has an unknown format", {
    code: "data/unknown-format",
    subject: file,
    expected: ".parquet, .jsonl or .json",
    received: kind || "no extension",
  });
}

function parseArray(text: string): unknown[] {
  const value: unknown = JSON.parse(text);
  if (Array.isArray(value)) return value;
  throw new Error("is not an array of rows");
}

/**
 * Decodes a file as UTF-8. Invalid bytes would become U+FFFD, and the policy would learn from them.
 * @throws DataError naming the line.
 */
function decodeText(bytes: Buffer, file: string): string {
  const mark = [...byteOrderMarks].find(([, start]) => bytes.subarray(0, start.length).equals(start));
  if (mark) {
    throw new DataError("begins with a byte order mark", {
      code: "data/byte-order-mark",
      subject: file,
      expected: "UTF-8 without a byte order mark",
      received: mark[0],
      remedy: "save it again as plain UTF-8",
    });
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    const { line, column } = findBadByte(bytes);
    throw new DataError("is not UTF-8", {
      code: "data/not-utf8",
      subject: `${file}, line ${line}`,
      expected: "UTF-8",
      received: `byte ${column} of the line is no part of a character`,
      remedy: "save it again as UTF-8",
      cause,
    });
  }
}

const byteOrderMarks = new Map([
  ["UTF-8 with a mark", Buffer.from([0xef, 0xbb, 0xbf])],
  ["UTF-16, little-endian", Buffer.from([0xff, 0xfe])],
  ["UTF-16, big-endian", Buffer.from([0xfe, 0xff])],
]);

/** Position of the first byte that is not valid UTF-8; line and column count from 1. */
function findBadByte(bytes: Buffer): { line: number; column: number } {
  let line = 1;
  for (let start = 0; start < bytes.length; line++) {
    const newline = bytes.indexOf(0x0a, start);
    const end = newline < 0 ? bytes.length : newline;
    const original = bytes.subarray(start, end);
    const decoded = Buffer.from(original.toString("utf8"));
    if (!decoded.equals(original)) {
      let column = 0;
      while (column < original.length && decoded[column] === original[column]) column++;
      return { line, column: column + 1 };
    }
    start = end + 1;
  }
  return { line, column: 1 };
}

function parseLines(text: string, file: string): DatasetRecord[] {
  const records: DatasetRecord[] = [];
  text.split("\n").forEach((line, i) => {
    if (line.trim() === "") return;
    const place = `${file}, line ${i + 1}`;
    try {
      records.push({ value: JSON.parse(line), place });
    } catch (cause) {
      throw new DataError("is not JSON", {
        code: "data/bad-row",
        subject: place,
        expected: "one JSON object",
        received: line.slice(0, 120),
        cause,
      });
    }
  });
  return records;
}

/** Converts 64-bit integers to numbers and undefined (the reader's null structs) to null. */
function simplify(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (Array.isArray(value)) return value.map(simplify);
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || value instanceof Date) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, simplify(entry)]));
}
