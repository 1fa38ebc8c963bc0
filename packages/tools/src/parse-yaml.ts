import { type Document, LineCounter, parseDocument } from "yaml";

/** Greatest depth of nested lists and mappings. */
const deepest = 100;

export interface YamlDocument {
  value: unknown;
  document: Document;
  lines: LineCounter;
}

/** A YAML text with the places of its keys. @throws Error as `parseYaml`. */
export function parseYamlDocument(text: string): YamlDocument {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  // The parser's warnings, such as an unresolved tag, mean a value that the author did not intend.
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem) throw problem;
  const value: unknown = document.toJS();
  checkTree(value, []);
  return { value, document, lines };
}

/**
 * The value of a YAML text.
 * @throws Error for a syntax error, an unknown tag, an alias inside its own anchor, or more than 100 levels.
 */
export function parseYaml(text: string): unknown {
  return parseYamlDocument(text).value;
}

/** @param parents the lists and mappings around the value. */
function checkTree(value: unknown, parents: readonly object[]): void {
  if (typeof value !== "object" || value === null) return;
  if (parents.includes(value)) throw new Error("an alias refers to a value that contains it");
  if (parents.length === deepest) throw new Error(`it is nested more than ${deepest} levels deep`);
  for (const entry of Object.values(value)) checkTree(entry, [...parents, value]);
}
