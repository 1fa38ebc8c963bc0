import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Writes a parser for `multi_turn.format`, by which every turn calls a tool with its own text.
 * @param suffixes one for each call of a turn, appended to its text.
 * @returns "<path>#parse".
 */
export function writeCallParser(folder: string, tool: string, suffixes: readonly string[] = [""]): string {
  const file = join(folder, "parsers", `${tool}-${suffixes.length}.ts`);
  mkdirSync(join(folder, "parsers"), { recursive: true });
  writeFileSync(
    file,
    `export const parse = (text: string) => ({
  content: "",
  calls: ${JSON.stringify(suffixes)}.map((suffix) => ({ name: ${JSON.stringify(tool)}, arguments: { text: text + suffix } })),
});
`,
  );
  return `${file}#parse`;
}
