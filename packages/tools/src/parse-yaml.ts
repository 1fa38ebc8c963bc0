import { type Document, LineCounter, parseDocument } from "yaml";

/** Levels of lists and mappings in one another. */
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
  // What the parser only warns of, such as a tag that nobody resolves, is a value that its writer did not mean.
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem) throw problem;
  const value: unknown = document.toJS();
  checkTree(value, []);
  return { value, document, lines };
}

/**
 * The value of a YAML text.
 * @throws Error for what does not parse, a tag that is not known, an alias that refers to what holds it, more than 100 levels.
 */
export function parseYaml(text: string): unknown {
  return parseYamlDocument(text).value;
}

/** @param parents what holds the value. */
function checkTree(value: unknown, parents: readonly object[]): void {
  if (typeof value !== "object" || value === null) return;
  if (parents.includes(value)) throw new Error("an alias refers to what holds it");
  if (parents.length === deepest) throw new Error(`it is nested more than ${deepest} levels deep`);
  for (const entry of Object.values(value)) checkTree(entry, [...parents, value]);
}
