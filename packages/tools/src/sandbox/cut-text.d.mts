/** @see cut-text.mjs */
export function cutText(text: string, maxBytes: number): string;
