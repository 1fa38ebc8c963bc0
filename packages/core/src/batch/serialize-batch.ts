import { createHash } from "node:crypto";
import { DataError } from "../errors/data-error.js";
import { Batch } from "./batch.js";
import type { Column } from "./column.js";
import { DenseColumn } from "./dense-column.js";
import { decodeValue, encodeValue } from "./encode-value.js";
import { RaggedColumn } from "./ragged-column.js";
import { type Dtype, dtypes, type TypedArray } from "./typed-array.js";
import { ValueColumn } from "./value-column.js";

/*
 * A file: magic "CRIABAT\n" (8 bytes), version (uint32), length of the header (uint32), SHA-256 of all that follows (32 bytes),
 * the header as JSON, padding to a multiple of 8, then the typed arrays, each starting at a multiple of 8. Numbers are
 * little-endian, as on every platform that the engine runs on.
 */
const magic = "CRIABAT\n";
const version = 1;
const fixedLength = 8 + 4 + 4 + 32;

/** Where an array lies, counted from the start of the arrays. */
interface StoredArray {
  dtype: Dtype;
  start: number;
  length: number;
}

type StoredColumn =
  | { name: string; kind: "dense"; values: StoredArray; shape: readonly number[] }
  | { name: string; kind: "ragged"; values: StoredArray; offsets: StoredArray }
  | { name: string; kind: "values"; values: unknown };

/**
 * A batch as bytes. Batches that are equal, with columns in the same order, give equal bytes.
 * @throws DataError for a value that has no written form (a function, a class instance).
 */
export function serializeBatch(batch: Batch): Uint8Array {
  const arrays: { start: number; bytes: Uint8Array }[] = [];
  let end = 0;
  const store = (array: TypedArray, dtype: Dtype): StoredArray => {
    const start = end;
    arrays.push({ start, bytes: new Uint8Array(array.buffer, array.byteOffset, array.byteLength) });
    end = align(start + array.byteLength);
    return { dtype, start, length: array.length };
  };
  const columns = batch.names.map((name): StoredColumn => {
    const column = batch.column(name);
    if (column instanceof DenseColumn)
      return { name, kind: "dense", values: store(column.values, column.dtype), shape: column.shape };
    if (column instanceof RaggedColumn) {
      const values = store(column.values, column.dtype);
      return { name, kind: "ragged", values, offsets: store(column.offsets, "int32") };
    }
    return { name, kind: "values", values: encodeValue((column as ValueColumn).values, `batch: column "${name}"`) };
  });
  const header = new TextEncoder().encode(JSON.stringify({ meta: encodeValue(batch.meta, "batch: meta"), columns }));
  const arraysStart = align(fixedLength + header.length);
  const bytes = new Uint8Array(arraysStart + end);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(magic));
  view.setUint32(8, version, true);
  view.setUint32(12, header.length, true);
  bytes.set(header, fixedLength);
  for (const { start, bytes: stored } of arrays) bytes.set(stored, arraysStart + start);
  bytes.set(hash(bytes), 16);
  return bytes;
}

/** @throws DataError when the bytes are not a batch, of another version, cut off or damaged. */
export function deserializeBatch(given: Uint8Array, subject = "batch"): Batch {
  // Slices of a Buffer would share its memory.
  const bytes = new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
  const fail = (summary: string, expected: string, received: string) =>
    new DataError(summary, {
      code: "data/damaged-batch",
      subject,
      expected,
      received,
      remedy: "write it again with serializeBatch",
    });
  if (bytes.length < fixedLength || new TextDecoder().decode(bytes.subarray(0, 8)) !== magic)
    throw fail(
      "is not a batch",
      `at least ${fixedLength} bytes that start with ${JSON.stringify(magic)}`,
      `${bytes.length} bytes`,
    );
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = view.getUint32(8, true);
  if (found !== version) throw fail("has an unknown version", String(version), String(found));
  if (!hash(bytes).every((byte, i) => byte === bytes[16 + i]))
    throw fail("is damaged", "bytes that match their checksum", `${bytes.length} bytes that do not`);
  const headerLength = view.getUint32(12, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(fixedLength, fixedLength + headerLength))) as {
    meta: unknown;
    columns: StoredColumn[];
  };
  const arraysStart = align(fixedLength + headerLength);
  // Copied, so that the result owns its memory and starts at an aligned address.
  const load = ({ dtype, start, length }: StoredArray): TypedArray => {
    const from = arraysStart + start;
    return new dtypes[dtype](bytes.slice(from, from + length * dtypes[dtype].BYTES_PER_ELEMENT).buffer);
  };
  const columns = new Map<string, Column>();
  for (const column of header.columns) {
    if (column.kind === "dense") columns.set(column.name, new DenseColumn(load(column.values), column.shape));
    else if (column.kind === "ragged")
      columns.set(column.name, new RaggedColumn(load(column.values), load(column.offsets) as Int32Array));
    else columns.set(column.name, new ValueColumn(decodeValue(column.values) as unknown[]));
  }
  return new Batch(columns, decodeValue(header.meta) as Record<string, unknown>);
}

/** Of everything but itself. */
function hash(bytes: Uint8Array): Uint8Array {
  return createHash("sha256").update(bytes.subarray(0, 16)).update(bytes.subarray(fixedLength)).digest();
}

function align(n: number): number {
  return Math.ceil(n / 8) * 8;
}
