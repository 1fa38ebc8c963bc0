/** A piece of text that a search found. */
export interface Passage {
  title: string;
  text: string;
  score: number;
}

/** Finds passages for several queries at once; one list for each query, best first. */
export interface Retriever {
  search(queries: readonly string[], topK: number, signal?: AbortSignal): Promise<Passage[][]>;
}

/** The form that Search-R1 taught models to read: `Doc 1 (Title: ...)`, then the text. */
export function formatPassages(passages: readonly Passage[]): string {
  if (passages.length === 0) return "No results.";
  return passages.map(({ title, text }, i) => `Doc ${i + 1} (Title: ${title})\n${text}`.trim()).join("\n\n");
}
