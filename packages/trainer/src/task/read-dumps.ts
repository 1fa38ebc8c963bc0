import { DataError, type ToolSchema } from "@cria/core";
import { DumpImages, type Filter, makeTrainingMessages } from "@cria/records";
import { parseDumpLine } from "@cria/records/internal";
import type { DatasetRecord } from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { ToolParser } from "@cria/tools";
import { noCalls } from "@cria/tools/internal";

export interface ReadDumpsOptions {
  messagesKey: string;
  toolsKey: string;
  keep?: Filter | null;
  parse?: ToolParser;
}

/**
 * Converts the records of dumps to conversations, as `cria rollout --as messages` writes them; records of other
 * files stay unchanged.
 * @param files records by file: a dump describes each of its tools once, and has its images beside it.
 * @returns `unusable`: number of dump records that were left out.
 * @throws DataError for a filter on a file that is no dump, or for a broken line of a dump.
 */
export async function readDumps(
  files: readonly { path: string; records: readonly DatasetRecord[] }[],
  tokenizer: DeltaTokenizer,
  { messagesKey, toolsKey, keep = null, parse = noCalls.parse }: ReadDumpsOptions,
): Promise<{ records: DatasetRecord[]; unusable: number }> {
  let unusable = 0;
  const read: DatasetRecord[] = [];
  for (const { path, records } of files) {
    const other = records.find(({ value }) => !isDumpLine(value));
    if (other) {
      if (keep) throw refuseFilter(other);
      read.push(...records);
      continue;
    }
    const schemas = new Map<string, ToolSchema>();
    const images = new DumpImages(path);
    for (const { value, place } of records) {
      const line = parseDumpLine(value, place);
      for (const schema of line.tool_schemas) schemas.set(schema.function.name, schema);
      const known = line.tools.flatMap((name) => schemas.get(name) ?? []);
      const isKept = keep === null || keep(line);
      const made = isKept ? makeTrainingMessages(await images.fill(line), { tokenizer, parse, schemas: known }) : null;
      if (made) read.push({ value: { [messagesKey]: made.row.messages, [toolsKey]: made.row.tools }, place });
      else unusable++;
    }
  }
  return { records: read, unusable };
}

/** Conversation rows have none of these columns. */
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
