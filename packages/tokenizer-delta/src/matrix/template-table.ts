import { readFileSync } from "node:fs";
import { join } from "node:path";

const PAGE = join(import.meta.dirname, "..", "..", "..", "..", "docs", "chat-templates.md");

/** Rows of the table under a heading of `docs/chat-templates.md`, cells trimmed, without its header. */
export function readTemplateTable(heading: string): string[][] {
  const lines = readFileSync(PAGE, "utf8").split("\n");
  const start = lines.indexOf(heading);
  if (start < 0) throw new Error(`chat-templates.md has no line "${heading}"`);
  const first = lines.findIndex((line, i) => i > start && line.startsWith("|"));
  let end = first;
  while (lines[end]?.startsWith("|")) end++;
  return lines.slice(first + 2, end).map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll("`", "")),
  );
}

/** Expands "all", "all but a, b" or "a, b" to names. @throws for a name that is not one of `names`. */
export function expandNames(text: string, names: readonly string[]): string[] {
  const but = text.startsWith("all but ");
  const listed = text === "all" ? [] : text.replace("all but ", "").split(", ");
  const unknown = listed.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`chat-templates.md names unknown conversations: ${unknown.join(", ")}`);
  return text === "all" || but ? names.filter((name) => !listed.includes(name)) : listed;
}
