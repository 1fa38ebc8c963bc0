/** Sets of characters, as sorted ranges of code points without surrogates. */
export type CodePoints = readonly (readonly [first: number, last: number])[];

const LAST = 0x10ffff;

/** Sorts, joins, and leaves out surrogates. */
export function toCodePoints(ranges: CodePoints): CodePoints {
  const sorted = ranges
    .flatMap(([first, last]): [number, number][] => [
      [first, Math.min(last, 0xd7ff)],
      [Math.max(first, 0xe000), last],
    ])
    .filter(([first, last]) => first <= last)
    .sort((a, b) => a[0] - b[0]);
  const joined: [number, number][] = [];
  for (const [first, last] of sorted) {
    const before = joined.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else joined.push([first, last]);
  }
  return joined;
}

/** All characters except these. */
export function complement(points: CodePoints): CodePoints {
  const rest: [number, number][] = [];
  let next = 0;
  for (const [first, last] of points) {
    if (first > next) rest.push([next, first - 1]);
    next = last + 1;
  }
  if (next <= LAST) rest.push([next, LAST]);
  return toCodePoints(rest);
}

/** Characters of `points` that are not in `others`. */
export function without(points: CodePoints, others: CodePoints): CodePoints {
  return complement(toCodePoints([...complement(points), ...others]));
}

export function contains(points: CodePoints, point: number): boolean {
  return points.some(([first, last]) => first <= point && point <= last);
}

/** A character class of a grammar. `points` must not be empty. */
export function writeClass(points: CodePoints): string {
  const write = (point: number) => {
    const char = String.fromCodePoint(point);
    if (/[a-zA-Z0-9 ]/.test(char)) return char;
    return point > 0xffff ? `\\U${point.toString(16).padStart(8, "0")}` : `\\u${point.toString(16).padStart(4, "0")}`;
  };
  return `[${points.map(([first, last]) => (first === last ? write(first) : `${write(first)}-${write(last)}`)).join("")}]`;
}
