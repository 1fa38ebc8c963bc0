import { encodePng, hashSeed, makeUniform, type Picture } from "@cria/core";

const size = 120;
const square = 12;
const colours = { red: [220, 40, 40], green: [40, 170, 60], blue: [40, 70, 220], yellow: [230, 200, 40] } as const;
const names = Object.keys(colours) as (keyof typeof colours)[];

export interface VisionRows {
  rows: Record<string, unknown>[];
  /** PNG files, by the paths that the rows name, relative to their file's folder. */
  pictures: Record<string, Uint8Array>;
}

/** Pictures of a small coloured square in grey noise, with a question for its colour; equal for equal seeds. */
export function makeVisionRows(name: string, count: number, seed: string): VisionRows {
  const uniform = makeUniform(hashSeed(name, seed));
  const pictures: Record<string, Uint8Array> = {};
  const rows = Array.from({ length: count }, (_, index) => {
    const colour = names[Math.floor(uniform() * names.length)]!;
    const path = `images/${seed}-${index}.png`;
    pictures[path] = encodePng(draw(colour, uniform));
    return {
      data_source: name,
      prompt: [
        { role: "system", content: "You look at pictures. Zoom in where you cannot see well enough." },
        { role: "user", content: "<image>Which colour has the small square? Answer with one word." },
      ],
      images: [{ path }],
      reward_model: { style: "rule", ground_truth: colour },
      extra_info: { index },
    };
  });
  return { rows, pictures };
}

function draw(colour: keyof typeof colours, uniform: () => number): Picture {
  const [left, top] = [0, 0].map(() => Math.floor(uniform() * (size - square))) as [number, number];
  const rgb = new Uint8Array(size * size * 3);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const isSquare = x >= left && x < left + square && y >= top && y < top + square;
      const grey = 90 + Math.floor(uniform() * 80);
      rgb.set(isSquare ? colours[colour] : [grey, grey, grey], (y * size + x) * 3);
    }
  }
  return { width: size, height: size, rgb };
}
