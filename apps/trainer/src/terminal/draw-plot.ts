/** Dots of a braille character, by column and row: each is a bit above U+2800. */
const DOTS = [
  [0x01, 0x02, 0x04, 0x40],
  [0x08, 0x10, 0x20, 0x80],
] as const;

export interface PlotOptions {
  /** Characters; each has two columns of dots. */
  width: number;
  /** Lines; each has four rows of dots. */
  height: number;
  /** Values of the bottom and the top; default: the smallest and the largest value. */
  range?: readonly [number, number];
}

/**
 * A curve in braille characters, the first value at the left, the last at the right; empty lines where there is none.
 */
export function drawPlot(values: readonly number[], { width, height, range }: PlotOptions): string[] {
  const cells = Array.from({ length: height }, () => new Array<number>(width).fill(0));
  const columns = 2 * width;
  const rows = 4 * height;
  const points = spread(values.filter(Number.isFinite), columns);
  const [low, high] = range ?? [Math.min(...points), Math.max(...points)];
  const findRow = (value: number) => {
    const share = high > low ? (value - low) / (high - low) : 0.5;
    return Math.round((1 - Math.max(0, Math.min(1, share))) * (rows - 1));
  };
  let before: number | null = null;
  points.forEach((value, x) => {
    const y = findRow(value);
    // A steep piece is drawn as a line, not as two points.
    const from = before === null ? y : before + Math.sign(y - before);
    for (let at = Math.min(from, y); at <= Math.max(from, y); at++)
      cells[at >> 2]![x >> 1]! |= DOTS[x & 1 ? 1 : 0][at & 3]!;
    before = y;
  });
  return cells.map((line) => line.map((bits) => String.fromCharCode(0x2800 + bits)).join(""));
}

/** One value a column: means where there are more values, straight lines where there are fewer. */
function spread(values: readonly number[], columns: number): number[] {
  const count = values.length;
  if (count === 0) return [];
  return Array.from({ length: columns }, (_, x) => {
    if (count >= columns) {
      const part = values.slice(Math.floor((x * count) / columns), Math.floor(((x + 1) * count) / columns));
      return part.reduce((a, b) => a + b, 0) / part.length;
    }
    const place = (x / (columns - 1)) * (count - 1);
    const left = Math.floor(place);
    return values[left]! + (place - left) * ((values[left + 1] ?? values[left]!) - values[left]!);
  });
}
