export interface DiffPart {
  kind: "same" | "added" | "removed";
  text: string;
}

/** Beyond this many words the difference is shown as one removal and one addition. */
const MOST = 3000;
/** A word with the space before it, or a single character. */
const WORD = /[^\S\n]?[\p{L}\p{N}]+|[\s\S]/gu;

/** The changes that turn one text into another, word by word (longest common subsequence, after equal ends are cut). */
export function diffWords(before: string, after: string): DiffPart[] {
  const a = before.match(WORD) ?? [];
  const b = after.match(WORD) ?? [];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const parts: DiffPart[] = [];
  add(parts, "same", a.slice(0, start));
  const [x, y] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  if (x.length > MOST || y.length > MOST) {
    add(parts, "removed", x);
    add(parts, "added", y);
  } else walk(parts, x, y);
  add(parts, "same", a.slice(a.length - end));
  return parts;
}

function walk(parts: DiffPart[], x: readonly string[], y: readonly string[]): void {
  const width = y.length + 1;
  const longest = new Uint16Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i--)
    for (let j = y.length - 1; j >= 0; j--)
      longest[i * width + j] =
        x[i] === y[j]
          ? longest[(i + 1) * width + j + 1]! + 1
          : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
  let [i, j] = [0, 0];
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) {
      add(parts, "same", [x[i]!]);
      i++;
      j++;
    } else if (j === y.length || (i < x.length && longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!))
      add(parts, "removed", [x[i++]!]);
    else add(parts, "added", [y[j++]!]);
  }
}

function add(parts: DiffPart[], kind: DiffPart["kind"], words: readonly string[]): void {
  const text = words.join("");
  if (text === "") return;
  const last = parts.at(-1);
  if (last?.kind === kind) last.text += text;
  else parts.push({ kind, text });
}
