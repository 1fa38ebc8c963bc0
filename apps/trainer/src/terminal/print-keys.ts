import { groupBySection, type KeyDetails } from "@cria/trainer/internal";
import { colors as pc } from "./colors.js";
import { findWidth, wrapParagraph } from "./wrap-text.js";

/** A paragraph, with each line indented by `spaces`. */
function indent(text: string, spaces: number): string {
  const lines = wrapParagraph(text, findWidth() - spaces);
  return lines.map((line) => " ".repeat(spaces) + line).join("\n");
}

const show = (value: unknown) => JSON.stringify(value);

/** Keys by section, each with its default, its type, and its meaning. */
export function formatKeys(keys: readonly KeyDetails[]): string {
  return [...groupBySection(keys)]
    .map(([section, entries]) => {
      const lines = entries.map((entry) => {
        const name = section === "" ? entry.key : entry.key.slice(section.length + 1);
        const value = entry.required ? pc.yellow("must be given") : show(entry.default);
        const names = entry.names ? ` Known: ${entry.names.join(", ")}.` : "";
        return `  ${pc.bold(name)} = ${value}  ${pc.dim(entry.type)}\n${indent(entry.meaning + names, 6)}`;
      });
      return [...(section === "" ? [] : [pc.cyan(section)]), ...lines].join("\n");
    })
    .join("\n\n");
}

/**
 * One key in full.
 * @param command that takes it as key=value; null: none does.
 */
export function formatKey(entry: KeyDetails, command: string | null): string {
  const example = entry.required ? "..." : show(entry.default);
  const quoted = /[\s"[{]/.test(example) ? `'${example}'` : example;
  const rows: [string, string | null][] = [
    ["value", entry.type],
    ["default", entry.required ? "none: it must be given" : show(entry.default)],
    ["verl", entry.verl && `${show(entry.verl.default)}; here: ${entry.verl.why}`],
    ["known", entry.names?.join(", ") ?? null],
    ["also", entry.other_names.join(", ") || null],
    ["set it", command && `${command} ${entry.key}=${quoted}`],
  ];
  const given = rows.filter((row): row is [string, string] => row[1] !== null);
  const table = given.map(([name, text]) => `  ${pc.dim(name.padEnd(8))} ${indent(text, 11).trim()}`);
  return [pc.bold(entry.key), indent(entry.meaning, 2), "", ...table].join("\n");
}
