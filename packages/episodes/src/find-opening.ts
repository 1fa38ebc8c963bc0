import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { findOpenThinking } from "@cria/tools/internal";

type Speaker = "user" | "tool";

const openings = new WeakMap<DeltaTokenizer, Partial<Record<Speaker, string>>>();

/** The beginning of the assistant's message that the generation prompt already contains, and that is not sampled. */
export function findOpening(tokenizer: DeltaTokenizer, after: Speaker): string {
  const known = openings.get(tokenizer) ?? {};
  openings.set(tokenizer, known);
  known[after] ??= renderOpening(tokenizer, after);
  return known[after];
}

/**
 * Templates that close the thoughts of a turn without any print a tag before each message's own text: it looks like a part of the
 * turn's header, and the prompt's end alone says that it opens thoughts.
 */
function renderOpening(tokenizer: DeltaTokenizer, after: Speaker): string {
  const opening = attempt(() => tokenizer.renderOpening(after));
  if (opening !== "") return opening;
  return attempt(() => findOpenThinking(tokenizer.renderDelta([{ role: after, content: "probe" }], true)));
}

function attempt(render: () => string): string {
  try {
    return render();
  } catch {
    // The template cannot continue after a turn; single-turn conversations still work.
    return "";
  }
}
