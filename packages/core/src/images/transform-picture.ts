import type { Picture } from "./image-encoder.js";

/** A rectangle of whole pixels: `left` and `top` are inside, `right` and `bottom` are outside. */
export interface PixelBox {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** The part of a picture inside a box, which must be within the picture and not empty. */
export function cropPicture(picture: Picture, { left, top, right, bottom }: PixelBox): Picture {
  const width = right - left;
  const height = bottom - top;
  const rgb = new Uint8Array(width * height * 3);
  for (let y = 0; y < height; y++) {
    const from = ((top + y) * picture.width + left) * 3;
    rgb.set(picture.rgb.subarray(from, from + width * 3), y * width * 3);
  }
  return { width, height, rgb };
}

/**
 * A picture in another size, both sides at least 1. A shorter side is averaged over areas, a longer side is
 * interpolated linearly between the centres of pixels.
 */
export function scalePicture(picture: Picture, width: number, height: number): Picture {
  const columns = makeTaps(picture.width, width);
  const rows = makeTaps(picture.height, height);
  const wide = new Float32Array(width * picture.height * 3);
  for (let y = 0; y < picture.height; y++) {
    for (let x = 0; x < width; x++) {
      const { start, weights } = columns[x]!;
      for (let c = 0; c < 3; c++) {
        let sum = 0;
        for (let k = 0; k < weights.length; k++)
          sum += weights[k]! * picture.rgb[(y * picture.width + start + k) * 3 + c]!;
        wide[(y * width + x) * 3 + c] = sum;
      }
    }
  }
  const rgb = new Uint8Array(width * height * 3);
  for (let y = 0; y < height; y++) {
    const { start, weights } = rows[y]!;
    for (let i = 0; i < width * 3; i++) {
      let sum = 0;
      for (let k = 0; k < weights.length; k++) sum += weights[k]! * wide[(start + k) * width * 3 + i]!;
      rgb[y * width * 3 + i] = Math.round(sum);
    }
  }
  return { width, height, rgb };
}

/**
 * For each of the `to` pixels: the first of the `from` pixels that it depends on, and their weights, which add up to
 * 1.
 */
function makeTaps(from: number, to: number): { start: number; weights: number[] }[] {
  const ratio = from / to;
  return Array.from({ length: to }, (_, i) => {
    if (ratio > 1) {
      const begin = i * ratio;
      const end = Math.min(from, begin + ratio);
      const start = Math.floor(begin);
      const weights = Array.from(
        { length: Math.ceil(end) - start },
        (_, k) => (Math.min(end, start + k + 1) - Math.max(begin, start + k)) / ratio,
      );
      return { start, weights };
    }
    const middle = Math.min(from - 1, Math.max(0, (i + 0.5) * ratio - 0.5));
    const start = Math.floor(middle);
    return start === middle ? { start, weights: [1] } : { start, weights: [start + 1 - middle, middle - start] };
  });
}
