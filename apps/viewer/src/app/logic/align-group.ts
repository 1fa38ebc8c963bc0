import type { DumpLine, DumpSpan } from "@cria/records";

/** Number of tokens with which all conversations begin. */
export function countShared(lines: readonly DumpLine[]): number {
  const [first] = lines;
  if (!first) return 0;
  return lines.slice(1).reduce((shared, line) => Math.min(shared, countEqual(first, line)), first.token_ids.length);
}

/** Number of tokens with which two conversations begin; tokens of an image are equal if the image is. */
export function countEqual(a: DumpLine, b: DumpLine): number {
  const end = Math.min(a.token_ids.length, b.token_ids.length);
  let i = 0;
  while (i < end && a.token_ids[i] === b.token_ids[i]) i++;
  const placeOf = ({ images = [] }: DumpLine) => images.map(({ hash, start }) => ({ hash, start }));
  const others = new Map(placeOf(b).map(({ hash, start }) => [start, hash]));
  const differs = placeOf(a).find(({ hash, start }) => start < i && others.get(start) !== hash);
  return differs?.start ?? i;
}

export interface AlignedPart {
  /** True if its tokens are in the common beginning with the reference. */
  same: boolean;
  sampled: boolean;
  text: string;
}

/**
 * The text of a conversation after the shared tokens, cut where it differs from the reference. Without `ends` a span
 * cannot be cut at a token: it counts as same only as a whole.
 */
export function alignText(line: DumpLine, shared: number, reference: DumpLine): AlignedPart[] {
  const equal = line === reference ? 0 : countEqual(line, reference);
  const parts: AlignedPart[] = [];
  line.spans.forEach((span, i) => {
    const end = line.spans[i + 1]?.start ?? line.token_ids.length;
    const text = textOf(line, span);
    const offset = (token: number) => {
      if (token <= span.start) return 0;
      if (token >= end) return text.length;
      return span.ends?.[token - span.start - 1] ?? 0;
    };
    const from = offset(shared);
    const cut = Math.max(from, offset(equal));
    if (cut > from) parts.push({ same: true, sampled: span.mask === 1, text: text.slice(from, cut) });
    if (cut < text.length && end > shared) parts.push({ same: false, sampled: span.mask === 1, text: text.slice(cut) });
  });
  return parts;
}

/** A span's text; for an image a word. */
function textOf({ images }: DumpLine, { text, image }: DumpSpan): string {
  if (image === undefined) return text;
  const shown = images?.[image];
  return shown ? `[image ${shown.width} × ${shown.height}, ${shown.hash.slice(0, 8)}]` : "[image]";
}

/** The text of the first tokens. */
export function readPrefix(line: DumpLine, tokens: number): string {
  let text = "";
  line.spans.forEach((span, i) => {
    const end = line.spans[i + 1]?.start ?? line.token_ids.length;
    if (end <= tokens) text += textOf(line, span);
    else if (span.start < tokens) text += span.text.slice(0, span.ends?.[tokens - span.start - 1] ?? 0);
  });
  return text;
}
