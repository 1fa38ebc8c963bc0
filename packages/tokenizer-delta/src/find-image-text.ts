import { markOf } from "./image-marks.js";
import { makeMark } from "./make-mark.js";

const WORD = makeMark();
const image = markOf({ hash: "" });

/**
 * The template's text of an image part, from its first bracket to its last (`<image>` without the newline after it),
 * found by comparing with the same message without the image. A number in it (`<|image_1|>`) may be any number. Null if
 * the template prints nothing for an image, changes the text around it, or prints a second one differently.
 * @param render renders a user's message with this content.
 */
export function findImageText(render: (content: string) => string): RegExp | null {
  try {
    const [none, one, two] = [WORD, WORD + image, WORD + image + image].map(render) as [string, string, string];
    const [first, both] = [findAdded(none, one), findAdded(none, two)];
    if (first === null || !both?.startsWith(first)) return null;
    const [source, second] = [toPattern(first), toPattern(both.slice(first.length))];
    return source !== null && source === second ? new RegExp(source, "g") : null;
  } catch {
    return null;
  }
}

/** The text added to `shorter` at one place to give `longer`; null if they differ in another way. */
function findAdded(shorter: string, longer: string): string | null {
  const added = longer.length - shorter.length;
  if (added <= 0) return null;
  let after = 0;
  while (after < shorter.length && shorter.at(-1 - after) === longer.at(-1 - after)) after++;
  let from = shorter.length - after;
  if (longer.slice(0, from) !== shorter.slice(0, from)) return null;
  const take = () => longer.slice(from, from + added);
  // If it ends like the text before it, it may be further to the right: "\n<image>" or "<image>\n", "><image" or
  // "<image>".
  const inText = longer.slice(0, from).includes(WORD);
  while (!inText && /^[^<[({]*[>\])}]/.test(take()) && longer[from] === longer[from + added]) from++;
  return take();
}

/** Pattern of the text from its first bracket to its last, or of all of it without surrounding space. */
function toPattern(added: string): string | null {
  const text = /[<[({>\])}].*[<[({>\])}]/s.exec(added)?.[0] ?? added.trim();
  if (text === "") return null;
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&").replace(/\d+/g, "\\d+");
}
