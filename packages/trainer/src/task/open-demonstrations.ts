import type { ImageAccess } from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { Settings } from "../config/import/settings.js";
import type { Demonstrations } from "../policy/mix-mini-batch.js";
import { openExamples } from "./open-examples.js";

/**
 * Reads the conversations that every update also learns to repeat; null: there are none.
 * @param maxLength of a conversation in tokens, the policy's context.
 * @throws ConfigError or DataError naming file, line and column.
 */
export async function openDemonstrations(
  { data: { demonstrations } }: Pick<Settings, "data">,
  folder: string,
  tokenizer: DeltaTokenizer,
  { maxLength, images, onNote }: { maxLength: number; images: ImageAccess; onNote: (note: string) => void },
): Promise<Demonstrations | null> {
  const { files, size, keep, messagesKey, toolsKey } = demonstrations;
  if (files === null) return null;
  const sequences = await openExamples(files, folder, tokenizer, {
    messagesKey,
    toolsKey,
    images,
    maxLength,
    keep,
    keys: { keep: "data.demonstrations.keep", maxLength: "the policy's context" },
    onNote: (note) => onNote(`demonstrations: ${note}`),
  });
  return { sequences, size };
}
