import type { Evidence, Finding, Severity } from "@cria/trainer";
import { colors as pc } from "./colors.js";
import { makePrintable } from "./printable-text.js";
import { quoteWord } from "./quote-word.js";
import { wrapParagraph } from "./wrap-text.js";

const paint: Record<Severity, (text: string) => string> = { high: pc.red, medium: pc.yellow, low: pc.cyan };

/**
 * A finding of the coach as a paragraph, with the command that shows an affected conversation.
 * @param runPath null when the run keeps no conversations.
 */
export function describeProblem(
  { rule, severity, sentence, remedy, evidence, holds }: Finding,
  runPath: string | null,
  width: number,
): string {
  // Names of tools and reward parts may contain any text.
  const text = makePrintable(`${sentence} ${remedy}`);
  const colour = holds ? paint[severity] : pc.dim;
  const lines = wrapParagraph(`${colour(`${severity} ${rule}:`)} ${text}`, width);
  const [first] = evidence;
  if (runPath === null || first === undefined) return lines.join("\n");
  return [...lines, `  see one: ${describeEvidence(first, runPath)}`].join("\n");
}

/** The command that shows the worst of the conversations. */
export function describeEvidence({ dump, filter }: Evidence, runPath: string): string {
  const [, validation, step = dump] = /^(validation-)?(\d+)$/.exec(dump) ?? [];
  const words = ["cria", "show", runPath, ...(validation ? ["--validation"] : []), "--step", step];
  return [...words, ...(filter ? ["--filter", filter] : []), "--worst", "1"].map(quoteWord).join(" ");
}
