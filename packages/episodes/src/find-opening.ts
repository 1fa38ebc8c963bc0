import type { DeltaTokenizer } from "@cria/tokenizer-delta";

type Speaker = "user" | "tool";

const openings = new WeakMap<DeltaTokenizer, Partial<Record<Speaker, string>>>();

/** What the generation prompt already says in the assistant's name; part of its message, though it was not sampled. */
export function findOpening(tokenizer: DeltaTokenizer, after: Speaker): string {
  const known = openings.get(tokenizer) ?? {};
  openings.set(tokenizer, known);
  known[after] ??= renderOpening(tokenizer, after);
  return known[after];
}

function renderOpening(tokenizer: DeltaTokenizer, after: Speaker): string {
  try {
    return tokenizer.renderOpening(after);
  } catch {
    // Such a template cannot go on after a turn; a single one it can have.
    return "";
  }
}
