import { DataError, type TrajectoryImage } from "@cria/core";

export type Truncation = "error" | "left" | "right" | "middle";

/**
 * Truncates a prompt to `limit` tokens (at least 1). `left` and `right` name the side that is cut away; `middle`
 * keeps the first and the last half, the last one token longer if `limit` is odd. An image that a cut would split is
 * dropped whole.
 * @param images the prompt's images, in order.
 * @throws DataError naming the row, with truncation "error".
 */
export function fitPrompt(
  promptIds: Int32Array,
  limit: number,
  truncation: Truncation,
  row: string,
  images: readonly Pick<TrajectoryImage, "start" | "length">[] = [],
): Int32Array {
  const { length } = promptIds;
  if (length <= limit) return promptIds;
  /** The image that a cut before this token would split. */
  const around = (cut: number) => images.find(({ start, length: own }) => start < cut && cut < start + own);
  const endOfHead = (cut: number) => around(cut)?.start ?? cut;
  const startOfTail = (cut: number) => {
    const image = around(cut);
    return image ? image.start + image.length : cut;
  };
  if (truncation === "left") return promptIds.slice(startOfTail(length - limit));
  if (truncation === "right") return promptIds.slice(0, endOfHead(limit));
  if (truncation === "middle") {
    const head = Math.floor(limit / 2);
    const tail = promptIds.slice(startOfTail(length - (limit - head)));
    return Int32Array.from([...promptIds.slice(0, endOfHead(head)), ...tail]);
  }
  throw new DataError("has a prompt that is too long", {
    code: "data/prompt-too-long",
    subject: row,
    expected: `at most ${limit} tokens: maxPromptLength of the task, data.max_prompt_length of a config`,
    received: `${promptIds.length} tokens`,
    remedy: "raise it; or say data: { filter_overlong_prompts: true }, or a truncation, in the config",
  });
}
