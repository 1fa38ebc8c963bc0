import type { ChatMessage, PolicyEngine } from "@cria/core";
import { copyData } from "../copy-data.js";
import type { DatasetRow } from "../data/dataset-row.js";
import type { CheckedOutput } from "./check-output.js";

/** An agent loop's output with nothing missing. */
export interface CompleteOutput extends CheckedOutput {
  rolloutLogprobs: Float32Array;
  messages: ChatMessage[];
}

/**
 * Asks the policy for what a loop may leave out. Its logprobs are those that its sampler would have given: weights do not
 * change while conversations run. A model that cannot score (it is not trained) leaves them 0.
 * @param temperature that of the sampling.
 */
export async function completeOutput(
  output: CheckedOutput,
  row: DatasetRow,
  engine: Pick<PolicyEngine, "score" | "detokenize" | "info">,
  temperature: number,
): Promise<CompleteOutput> {
  const messages = output.messages ?? [...copyData(row.prompt), ...readTurns(output, engine)];
  if (output.rolloutLogprobs !== null) return { ...output, messages, rolloutLogprobs: output.rolloutLogprobs };
  const { tokenIds, promptLength, responseMask } = output;
  const sampled = responseMask.reduce((sum, bit) => sum + bit, 0);
  const metrics = sampled > 0 ? { ...output.metrics, rescored_tokens: sampled } : output.metrics;
  const silent = { ...output, messages, metrics, rolloutLogprobs: new Float32Array(tokenIds.length) };
  if (sampled === 0 || engine.info.trainable === "none") return silent;
  // Greedy sampling gives logprobs at temperature 1.
  const options = { temperature: temperature === 0 ? 1 : temperature };
  const [scored] = await engine.score([{ tokenIds, from: Math.max(1, promptLength) }], options);
  const rolloutLogprobs = scored!.logprobs.map((value, i) => (responseMask[i] ? value : 0));
  return { ...silent, rolloutLogprobs };
}

/** Each stretch of sampled tokens as an assistant's message, without the token that ends a turn. */
function readTurns(
  { tokenIds, responseMask }: CheckedOutput,
  engine: Pick<PolicyEngine, "detokenize" | "info">,
): ChatMessage[] {
  const messages: ChatMessage[] = [];
  for (let start = responseMask.indexOf(1); start >= 0; ) {
    const next = responseMask.indexOf(0, start);
    const end = next < 0 ? responseMask.length : next;
    const ended = engine.info.endOfGenerationTokens.includes(tokenIds[end - 1]!);
    messages.push({
      role: "assistant",
      content: engine.detokenize(tokenIds.subarray(start, ended ? end - 1 : end)),
    });
    start = next < 0 ? -1 : responseMask.indexOf(1, next);
  }
  return messages;
}
