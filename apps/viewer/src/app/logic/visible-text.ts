/**
 * Control characters, characters that change the direction of writing or have no width, halves of characters; not
 * newline and tab.
 */
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

export interface TextPart {
  text: string;
  /** True if it stands for an invisible character. */
  control: boolean;
}

/** Text with every character visible: hidden ones as pictures (␛) or code points (⟨202E⟩). */
export function showControls(text: string): string {
  return text.replace(HIDDEN, (character) => nameControl(character));
}

/** The same in parts, so that stand-ins can look different. */
export function splitControls(text: string): TextPart[] {
  const parts: TextPart[] = [];
  let end = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > end) parts.push({ text: text.slice(end, match.index), control: false });
    const last = parts.at(-1);
    if (last?.control) last.text += nameControl(match[0]);
    else parts.push({ text: nameControl(match[0]), control: true });
    end = match.index + match[0].length;
  }
  if (end < text.length) parts.push({ text: text.slice(end), control: false });
  return parts;
}

function nameControl(character: string): string {
  const code = character.codePointAt(0)!;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "␡";
  return `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}
