import { DataError } from "@cria/core";

export type Truncation = "error" | "left" | "right" | "middle";

/**
 * A prompt of at most `limit` tokens (at least 1). The side named is cut away; `middle` keeps the first half and the last,
 * the last having one more where `limit` is odd.
 * @throws DataError naming the row, with truncation "error".
 */
export function fitPrompt(promptIds: Int32Array, limit: number, truncation: Truncation, row: string): Int32Array {
  if (promptIds.length <= limit) return promptIds;
  if (truncation === "left") return promptIds.slice(promptIds.length - limit);
  if (truncation === "right") return promptIds.slice(0, limit);
  if (truncation === "middle") {
    const head = Math.floor(limit / 2);
    return Int32Array.from([...promptIds.slice(0, head), ...promptIds.slice(promptIds.length - (limit - head))]);
  }
  throw new DataError("has a prompt that is too long", {
    code: "data/prompt-too-long",
    subject: row,
    expected: `at most ${limit} tokens (data.max_prompt_length)`,
    received: `${promptIds.length} tokens`,
    remedy: "raise data.max_prompt_length, set data.filter_overlong_prompts: true, or choose a data.truncation",
  });
}
