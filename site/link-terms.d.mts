export interface Term {
  name: string;
  address: string;
}
/** The part of markdown-it that a plugin for texts needs. */
export interface MarkdownRules {
  core: { ruler: { push(name: string, rule: (state: never) => void): unknown } };
}
export function readTerms(glossary: string): Term[];
/** @param options.skip pages that stay as they are, by what their rendering is given. */
export function linkTerms(
  markdown: MarkdownRules,
  terms: readonly Term[],
  options?: { skip?: (env: { relativePath?: string }) => boolean },
): void;
