import { parseFilter } from "@cria/records";
import type { ImageAccess } from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { Settings } from "../config/import/settings.js";
import type { Demonstrations } from "../policy/mix-mini-batch.js";
import { openExamples } from "./open-examples.js";

const KEEP = "data.demonstrations.keep";

/**
 * Checks the filter of the conversations that every update also learns to repeat, before a model is loaded, and returns
 * a function that reads them with the model's tokenizer. It returns null if there are none; `maxLength` is that of a
 * conversation in tokens, the policy's context.
 * @throws ConfigError for a wrong filter; the function DataError naming file, line and column.
 */
export function prepareDemonstrations({ data: { demonstrations } }: Pick<Settings, "data">, folder: string) {
  const { files, size, keep: text, messagesKey, toolsKey } = demonstrations;
  const keep = text === null ? null : parseFilter(text, KEEP);
  return async (
    tokenizer: DeltaTokenizer,
    { maxLength, images, onNote }: { maxLength: number; images: ImageAccess; onNote: (note: string) => void },
  ): Promise<Demonstrations | null> => {
    if (files === null) return null;
    const sequences = await openExamples(files, folder, tokenizer, {
      messagesKey,
      toolsKey,
      images,
      maxLength,
      keep,
      keys: { keep: KEEP, maxLength: "the policy's context" },
      onNote: (note) => onNote(`demonstrations: ${note}`),
    });
    return { sequences, size };
  };
}
