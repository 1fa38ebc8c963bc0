import type { Filter } from "@cria/records";
import type { ImageAccess, RowMap } from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { getToolFormat } from "@cria/tools";
import { noCalls } from "@cria/tools/internal";
import { probeModel } from "./find-tool-format.js";
import { resolveFiles } from "./open-data.js";
import { readExamples, type SftExample } from "./read-examples.js";

export interface OpenExamplesOptions {
  messagesKey: string;
  toolsKey: string;
  imagesKey?: string;
  images?: ImageAccess;
  /** Maximum number of tokens; longer conversations are left out. */
  maxLength: number;
  map?: RowMap;
  /** Filter of the conversations of dumps; null: all that ended by themselves. */
  keep: Filter | null;
  /** Names in errors: the key of `keep`, and that of `maxLength`. */
  keys: { keep: string; maxLength: string };
  onProgress?: (done: number, total: number) => void;
  /** Called once for each kind of conversations that was left out or could not be distinguished. */
  onNote?: (note: string) => void;
}

/**
 * Reads the conversations of files or addresses, and tokenizes them with masks.
 * @throws DataError as `readExamples`.
 */
export async function openExamples(
  files: readonly string[],
  folder: string,
  tokenizer: DeltaTokenizer,
  { keys, onNote, ...options }: OpenExamplesOptions,
): Promise<SftExample[]> {
  const { format } = probeModel(tokenizer);
  const { parse } = format === null ? noCalls : getToolFormat(format);
  const { examples, dropped, unsplit, unusable } = await readExamples(await resolveFiles(files, folder), tokenizer, {
    ...options,
    keys,
    parse,
  });
  if (dropped > 0) onNote?.(`${dropped} longer than ${keys.maxLength} left out`);
  if (unsplit > 0) onNote?.(`${unsplit} with control tokens that users or tools spelled`);
  if (unusable > 0) onNote?.(`${unusable} of dumps left out: not kept, failed, or cut in their last turn`);
  return examples;
}
