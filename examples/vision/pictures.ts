// Pictures of digits, drawn from a number: the same number gives the same picture.
import type { Picture } from "cria";

const font = [
  ["01110", "10001", "10011", "10101", "11001", "10001", "01110"],
  ["00100", "01100", "00100", "00100", "00100", "00100", "01110"],
  ["01110", "10001", "00001", "00110", "01000", "10000", "11111"],
  ["01110", "10001", "00001", "00110", "00001", "10001", "01110"],
  ["00010", "00110", "01010", "10010", "11111", "00010", "00010"],
  ["11111", "10000", "11110", "00001", "00001", "10001", "01110"],
  ["00110", "01000", "10000", "11110", "10001", "10001", "01110"],
  ["11111", "00001", "00010", "00100", "01000", "01000", "01000"],
  ["01110", "10001", "10001", "01110", "10001", "10001", "01110"],
  ["01110", "10001", "10001", "01111", "00001", "00010", "01100"],
];

const colours = [
  [220, 30, 30],
  [30, 200, 40],
  [40, 60, 220],
  [230, 220, 40],
  [30, 210, 220],
  [210, 40, 200],
  [240, 240, 240],
  [250, 140, 20],
] as const;

interface Drawing {
  /** Side of the picture, in pixels. */
  size: number;
  digit: number;
  /** Pixels of a dot of the font, which is 5 dots wide and 7 high. */
  dot: number;
  /** The middle of the digit, which is drawn at most a pixel away from it. */
  middle: readonly [x: number, y: number];
}

/** A digit in one of eight colours before dark noise. */
export function drawDigit(random: () => number, { size, digit, dot, middle }: Drawing): Picture {
  const below = (limit: number) => Math.floor(random() * limit);
  // Noise of four values: more would make files of megabytes.
  const rgb = Uint8Array.from({ length: size * size * 3 }, () => 18 * below(4));
  const colour = colours[below(colours.length)]!.map((value) => Math.max(0, Math.min(255, value + below(51) - 25)));
  const left = Math.round(middle[0] - (5 * dot) / 2) + below(3) - 1;
  const top = Math.round(middle[1] - (7 * dot) / 2) + below(3) - 1;
  for (let y = 0; y < 7 * dot; y++) {
    for (let x = 0; x < 5 * dot; x++) {
      if (font[digit]![Math.floor(y / dot)]![Math.floor(x / dot)] === "1")
        rgb.set(colour, 3 * ((top + y) * size + left + x));
    }
  }
  return { width: size, height: size, rgb };
}
