import { slugify } from "./slugify.mjs";

/** The terms of the glossary: its third-level headings. */
export function readTerms(glossary) {
  return [...glossary.matchAll(/^### (.+)$/gm)].map(([, name]) => ({ name, address: `/glossary#${slugify(name)}` }));
}

/**
 * A plugin of markdown-it: the first use of each term on a page leads to the glossary. Headings, code and links stay as they are.
 * @param {{ core: { ruler: { push(name: string, rule: (state: any) => void): unknown } } }} markdown what a plugin for texts needs
 * @param {readonly { name: string, address: string }[]} terms
 * @param {{ skip?: (env: { relativePath?: string }) => boolean }} options pages that stay as they are
 */
export function linkTerms(markdown, terms, { skip = () => false } = {}) {
  if (terms.length === 0) return;
  const byWord = new Map(terms.flatMap((term) => listForms(term.name).map((form) => [form, term])));
  const words = [...byWord.keys()].sort((a, b) => b.length - a.length).map(escapePattern);
  const pattern = new RegExp(`(?<![\\w/.-])(?:${words.join("|")})(?![\\w/-])`, "i");
  markdown.core.ruler.push("link_terms", ({ tokens, env, Token }) => {
    if (skip(env)) return;
    const open = new Set(terms);
    for (const [i, token] of tokens.entries()) {
      if (token.type !== "inline" || tokens[i - 1]?.type === "heading_open") continue;
      let depth = 0;
      token.children = token.children.flatMap((child) => {
        depth += child.type === "link_open" ? 1 : child.type === "link_close" ? -1 : 0;
        return child.type === "text" && depth === 0 ? linkText(child, { open, byWord, pattern, Token }) : [child];
      });
    }
  });
}

/** A text as texts and links, for the terms that are still open. */
function linkText(token, context) {
  const { open, byWord, pattern, Token } = context;
  let from = 0;
  for (;;) {
    const rest = token.content.slice(from);
    const match = pattern.exec(rest);
    if (!match) return [token];
    const term = byWord.get(match[0].toLowerCase());
    if (!open.delete(term)) {
      from += match.index + match[0].length;
      continue;
    }
    const begin = from + match.index;
    const end = begin + match[0].length;
    const make = (type, tag, nesting, content = "") => Object.assign(new Token(type, tag, nesting), { content });
    const link = make("link_open", "a", 1);
    link.attrs = [
      ["href", term.address],
      ["class", "term"],
    ];
    const after = make("text", "", 0, token.content.slice(end));
    return [
      make("text", "", 0, token.content.slice(0, begin)),
      link,
      make("text", "", 0, token.content.slice(begin, end)),
      make("link_close", "a", -1),
      ...linkText(after, context),
    ];
  }
}

/** "Trajectory": trajectory, trajectories. */
function listForms(name) {
  const word = name.toLowerCase();
  return [word, word.endsWith("y") ? `${word.slice(0, -1)}ies` : `${word}s`];
}

function escapePattern(text) {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
