import type { ChatMessage } from "@cria/core";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { JudgementError } from "./reward-model.js";

/** Tokenizes a judge's prompt. @throws JudgementError when it has more than `limit` tokens. */
export function encodeWithin(tokenizer: DeltaTokenizer, messages: readonly ChatMessage[], limit: number): Int32Array {
  const ids = tokenizer.encodePrompt(messages);
  if (ids.length <= limit) return ids;
  throw new JudgementError(`has ${ids.length} tokens, where max_model_len leaves ${limit}`, {
    code: "reward/too-long",
    subject: "judge's prompt",
  });
}
