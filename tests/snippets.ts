// Blocks of code in pages, for the tests that run, compile or read them.

/** A fenced block of a page. */
export interface Snippet {
  language: string;
  text: string;
  /** Line of the page on which its text begins, from 1. */
  line: number;
  /** File that its first line names, as in `// task.mts`; null: none. */
  name: string | null;
  /** Declarations that a page's reader need not see: the comment `<!-- types ... -->` in front of the block. */
  types: string;
}

export function readSnippets(page: string): Snippet[] {
  const blocks = page.matchAll(/(?:^<!-- types\n([\s\S]*?)-->\n+)?^```(\w*)\n([\s\S]*?)^```$/gm);
  return [...blocks].map((match) => {
    const [whole, types = "", language, text] = match;
    const before = page.slice(0, match.index + whole.indexOf("```"));
    const name = /^\/\/ ([\w-]+\.m?ts)\b/.exec(text!)?.[1] ?? null;
    return { language: language!, text: text!, line: before.split("\n").length + 1, name, types };
  });
}
