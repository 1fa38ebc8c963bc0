import type { ContentPart } from "@cria/core";
import type { ToolResponse } from "./base-tool.js";

/** An answer of parts: its texts, a line or more each, and where it has images all parts in their order. */
export function describeParts(parts: readonly ContentPart[]): ToolResponse & { text: string } {
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  return { text: texts.join("\n"), ...(texts.length < parts.length ? { content: parts } : {}) };
}
