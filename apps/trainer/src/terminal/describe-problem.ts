import type { Problem } from "@cria/trainer";
import { colors as pc } from "./colors.js";
import { quoteWord } from "./quote-word.js";
import { wrapParagraph } from "./wrap-text.js";

/**
 * A problem as a paragraph, with the command that shows a conversation that has it.
 * @param runPath null where the run keeps no conversations.
 */
export function describeProblem(
  { seen, cause, remedy, step, filter }: Problem,
  runPath: string | null,
  width: number,
): string {
  const lines = wrapParagraph(
    `${pc.yellow("this run does not learn.")} ${seen}. Likely cause: ${cause}. ${remedy}.`,
    width,
  );
  if (runPath === null) return lines.join("\n");
  const words = ["cria", "show", runPath, "--step", `${step}`, ...(filter ? ["--filter", filter] : []), "--worst", "1"];
  return [...lines, `  see one: ${words.map(quoteWord).join(" ")}`].join("\n");
}
