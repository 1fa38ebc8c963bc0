import { DataError, type TrajectoryImage } from "@cria/core";

export type Truncation = "error" | "left" | "right" | "middle";

/**
 * A prompt of at most `limit` tokens (at least 1). The side named is cut away; `middle` keeps the first half and the last,
 * the last having one more where `limit` is odd. An image is never cut: where a cut would go through one, it goes too.
 * @param images those of the prompt, in their order.
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
  /** The image that a cut before this token would go through. */
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
