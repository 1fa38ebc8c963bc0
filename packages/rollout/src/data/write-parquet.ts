import { writeFileAtomically } from "@cria/core";
import { guardWrite } from "@cria/core/internal";
import type { SchemaElement } from "hyparquet";

/** Type of a Parquet column. Every value may be null; a struct's missing keys are written as null. */
export type ParquetField =
  | "string"
  | "int64"
  | "double"
  | "boolean"
  | "bytes"
  | { list: ParquetField }
  | { struct: ParquetFields };
export type ParquetFields = { readonly [name: string]: ParquetField };

/** Writes rows with nested columns in pyarrow's layout. The write is atomic. */
export async function writeParquet(
  file: string,
  fields: ParquetFields,
  rows: readonly Record<string, unknown>[],
): Promise<void> {
  const schema: SchemaElement[] = [{ name: "schema", num_children: Object.keys(fields).length }];
  for (const [name, field] of Object.entries(fields)) schema.push(...describeField(name, field));
  const columnData = Object.entries(fields).map(([name, field]) => ({
    name,
    data: rows.map((row) => toParquet(row[name], field)),
  }));
  const { parquetWriteBuffer } = await import("hyparquet-writer");
  const buffer = parquetWriteBuffer({ columnData, schema, createdBy: "cria" });
  await guardWrite(file, () => writeFileAtomically(file, new Uint8Array(buffer)));
}

function describeField(name: string, field: ParquetField): SchemaElement[] {
  const optional = { name, repetition_type: "OPTIONAL" } as const;
  if (field === "string")
    return [{ ...optional, type: "BYTE_ARRAY", converted_type: "UTF8", logical_type: { type: "STRING" } }];
  if (field === "int64") return [{ ...optional, type: "INT64" }];
  if (field === "double") return [{ ...optional, type: "DOUBLE" }];
  if (field === "bytes") return [{ ...optional, type: "BYTE_ARRAY" }];
  if (field === "boolean") return [{ ...optional, type: "BOOLEAN" }];
  if ("list" in field)
    return [
      { ...optional, num_children: 1, converted_type: "LIST", logical_type: { type: "LIST" } },
      { name: "list", repetition_type: "REPEATED", num_children: 1 },
      ...describeField("element", field.list),
    ];
  const children = Object.entries(field.struct);
  return [
    { ...optional, num_children: children.length },
    ...children.flatMap(([child, childField]) => describeField(child, childField)),
  ];
}

/** Converts 64-bit integers to bigint, as the writer requires. */
function toParquet(value: unknown, field: ParquetField): unknown {
  if (value === null || value === undefined) return null;
  if (field === "int64") return BigInt(value as number);
  if (typeof field === "string") return value;
  if ("list" in field) return (value as unknown[]).map((entry) => toParquet(entry, field.list));
  const entries = Object.entries(field.struct);
  return Object.fromEntries(entries.map(([name, f]) => [name, toParquet((value as Record<string, unknown>)[name], f)]));
}
