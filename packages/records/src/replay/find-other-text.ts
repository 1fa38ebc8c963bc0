import { contentText, type PolicyEngine } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";
import { findOpening } from "@cria/episodes/internal";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";

/**
 * Compares the assistant's messages of a built-in loop's conversation with their sampled tokens. It reads only the
 * record, so a difference is a reason to replay the conversation, but no proof: a turn may end within a character.
 * @param promptMessages number of prompt messages.
 * @returns description of the first difference; null: none.
 */
export function findOtherText(
  { tokenIds, responseMask, messages, timeline }: UnjudgedTrajectory,
  promptMessages: number,
  { engine, tokenizer }: { engine: Pick<PolicyEngine, "detokenize" | "info">; tokenizer: DeltaTokenizer },
): string | null {
  const turns = (timeline?.turns ?? []).filter(({ role }) => role === "assistant");
  const said = [...messages.keys()].filter((i) => i >= promptMessages && messages[i]!.role === "assistant");
  if (turns.length !== said.length) return `${said.length} messages of the assistant in ${turns.length} turns`;
  let seen = 0;
  for (const [k, { start, end, toolCalls }] of turns.entries()) {
    if (start < seen || end <= start) return `turn ${k + 1} of the assistant has the tokens ${start} to ${end}`;
    if (responseMask.subarray(seen, start).includes(1)) return `sampled tokens before turn ${k + 1} of the assistant`;
    const isCall = (t: number) => toolCalls !== undefined && t >= toolCalls.start && t < toolCalls.end;
    for (let t = start; t < end; t++)
      if (responseMask[t] === 0 && !isCall(t)) return `token ${t} of an assistant's turn was not sampled`;
    const tokens = tokenIds.subarray(start, end);
    const message = messages[said[k]!]!;
    const opening = findOpening(tokenizer, messages[said[k]! - 1]?.role === "tool" ? "tool" : "user");
    const isEnded = engine.info.endOfGenerationTokens.includes(tokens.at(-1)!);
    const text = opening + engine.detokenize(isEnded ? tokens.subarray(0, -1) : tokens);
    if (contentText(message.content) !== text) return `message ${said[k]} is not the text of its tokens`;
    seen = end;
  }
  return responseMask.subarray(seen).includes(1) ? "sampled tokens after the assistant's last turn" : null;
}
