import { DataError, type ToolSchema } from "@cria/core";
import { type DatasetRecord, type Filter, makeTrainingMessages, parseDumpLine } from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { parseNoCalls, type ToolParser } from "@cria/tools";

export interface ReadDumpsOptions {
  messagesKey: string;
  toolsKey: string;
  keep?: Filter | null;
  parse?: ToolParser;
}

/**
 * Makes conversations of the records of dumps, as `cria rollout --as messages` writes them; records of other files stay as they are.
 * @param files records, file by file: a dump describes each of its tools once.
 * @returns `unusable`: how many records of dumps were left out.
 * @throws DataError when a filter is given and a file is no dump, or a line of a dump is broken.
 */
export function readDumps(
  files: readonly (readonly DatasetRecord[])[],
  tokenizer: DeltaTokenizer,
  { messagesKey, toolsKey, keep = null, parse = parseNoCalls }: ReadDumpsOptions,
): { records: DatasetRecord[]; unusable: number } {
  let unusable = 0;
  const records = files.flatMap((file) => {
    const other = file.find(({ value }) => !isDumpLine(value));
    if (other) {
      if (keep) throw refuseFilter(other);
      return file;
    }
    const schemas = new Map<string, ToolSchema>();
    return file.flatMap(({ value, place }) => {
      const line = parseDumpLine(value, place);
      for (const schema of line.tool_schemas) schemas.set(schema.function.name, schema);
      const known = line.tools.flatMap((name) => schemas.get(name) ?? []);
      const isKept = keep === null || keep(line);
      const made = isKept ? makeTrainingMessages(line, { tokenizer, parse, schemas: known }) : null;
      if (made) return [{ value: { [messagesKey]: made.row.messages, [toolsKey]: made.row.tools }, place }];
      unusable++;
      return [];
    });
  });
  return { records, unusable };
}

/** Rows of conversations have none of these columns. */
function isDumpLine(value: unknown): boolean {
  return typeof value === "object" && value !== null && "token_ids" in value && "response_mask" in value;
}

function refuseFilter({ place }: DatasetRecord): DataError {
  return new DataError("is no conversation of a dump", {
    code: "data/bad-filter",
    subject: place,
    expected: "with data.keep, a dump: rollouts/<step>.jsonl of a run, or what cria rollout and cria eval write",
    remedy: "leave data.keep out, or choose rows with data.map",
  });
}
