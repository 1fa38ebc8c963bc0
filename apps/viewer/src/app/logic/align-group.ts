import type { DumpLine } from "@cria/rollout";

/** How many tokens all conversations begin with. */
export function countShared(lines: readonly DumpLine[]): number {
  const first = lines[0]?.token_ids ?? [];
  let shared = first.length;
  for (const { token_ids } of lines.slice(1)) shared = Math.min(shared, countEqual(first, token_ids));
  return shared;
}

/** How many tokens two conversations begin with. */
export function countEqual(a: readonly number[], b: readonly number[]): number {
  const end = Math.min(a.length, b.length);
  let i = 0;
  while (i < end && a[i] === b[i]) i++;
  return i;
}

export interface AlignedPart {
  /** Tokens that also begin the conversation that it is compared with. */
  same: boolean;
  sampled: boolean;
  text: string;
}

/**
 * The text of a conversation after the shared tokens, cut where it leaves the one that it is compared with. Without `ends` a
 * span is cut at no token: it counts as same only when all of it is.
 */
export function alignText(line: DumpLine, shared: number, reference: DumpLine): AlignedPart[] {
  const equal = line === reference ? 0 : countEqual(line.token_ids, reference.token_ids);
  const parts: AlignedPart[] = [];
  line.spans.forEach((span, i) => {
    const end = line.spans[i + 1]?.start ?? line.token_ids.length;
    const offset = (token: number) => {
      if (token <= span.start) return 0;
      if (token >= end) return span.text.length;
      return span.ends?.[token - span.start - 1] ?? 0;
    };
    const from = offset(shared);
    const cut = Math.max(from, offset(equal));
    if (cut > from) parts.push({ same: true, sampled: span.mask === 1, text: span.text.slice(from, cut) });
    if (cut < span.text.length && end > shared)
      parts.push({ same: false, sampled: span.mask === 1, text: span.text.slice(cut) });
  });
  return parts;
}

/** The text of the first tokens. */
export function readPrefix(line: DumpLine, tokens: number): string {
  let text = "";
  line.spans.forEach((span, i) => {
    const end = line.spans[i + 1]?.start ?? line.token_ids.length;
    if (end <= tokens) text += span.text;
    else if (span.start < tokens) text += span.text.slice(0, span.ends?.[tokens - span.start - 1] ?? 0);
  });
  return text;
}
