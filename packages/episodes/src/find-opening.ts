import type { DeltaTokenizer } from "@cria/tokenizer-delta";

type Speaker = "user" | "tool";

const openings = new WeakMap<DeltaTokenizer, Partial<Record<Speaker, string>>>();

/** The beginning of the assistant's message that the generation prompt already contains, and that is not sampled. */
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
    // The template cannot continue after a turn; single-turn conversations still work.
    return "";
  }
}
