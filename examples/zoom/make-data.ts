// Writes build/: conversations of a skill and of bad habits, and rows to train and to hold out.   npm run make-data
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cropPicture, encodePng, type Picture } from "cria";
import { drawDigit, makeRandom } from "../vision/pictures.js";

const build = join(import.meta.dirname, "build");
const question = "<image> which digit?";
const side = 32;
/** What the tool answers beside the picture. */
const describe = (box: readonly number[]) => `The region ${JSON.stringify(box)} of the image.`;

/** A picture of nine cells, one of which has a small digit. */
function draw(seed: number) {
  const random = makeRandom(seed);
  const digit = Math.floor(random() * 10);
  const cell = Math.floor(random() * 9);
  const middle = [side * (cell % 3) + side / 2, side * Math.floor(cell / 3) + side / 2] as const;
  return { digit, cell, picture: drawDigit(random, { size: 3 * side, digit, dot: 2, middle }) };
}

/** [x1, y1, x2, y2] */
const boxOf = (cell: number) => {
  const [left, top] = [side * (cell % 3), side * Math.floor(cell / 3)];
  return [left, top, left + side, top + side] as const;
};

const toImage = (picture: Picture) => ({ data: Buffer.from(encodePng(picture)).toString("base64") });

/** A conversation that zooms where the digit is and reads it, each with a probability; else into the middle, and it guesses. */
function makeConversation(seed: number, { zooms, reads }: { zooms: number; reads: number }) {
  const { digit, cell, picture } = draw(seed);
  const random = makeRandom(seed + 0x5eed);
  const looked = random() < zooms ? cell : 4;
  const said = looked === cell && random() < reads ? digit : Math.floor(random() * 10);
  const box = boxOf(looked);
  const [left, top, right, bottom] = box;
  const call = JSON.stringify({ name: "zoom", arguments: { bbox_2d: box } });
  return {
    messages: [
      { role: "user", content: question },
      { role: "assistant", content: `<tool_call>\n${call}\n</tool_call>` },
      { role: "tool", content: `<image>${describe(box)}` },
      { role: "assistant", content: String(said) },
    ],
    images: [toImage(picture), toImage(cropPicture(picture, { left, top, right, bottom }))],
  };
}

function makeRow(seed: number) {
  const { digit, picture } = draw(seed);
  return {
    data_source: "zoom",
    prompt: [{ role: "user", content: question }],
    images: [toImage(picture)],
    reward_model: { style: "rule", ground_truth: String(digit) },
  };
}

const write = async (name: string, first: number, count: number, make: (seed: number) => object) => {
  const lines = Array.from({ length: count }, (_, i) => `${JSON.stringify(make(first + i))}\n`);
  await writeFile(join(build, name), lines.join(""));
};
await mkdir(build, { recursive: true });
await write("skill.jsonl", 0, 4000, (seed) => makeConversation(seed, { zooms: 1, reads: 1 }));
await write("habit.jsonl", 1_000_000, 2000, (seed) => makeConversation(seed, { zooms: 0.3, reads: 0.7 }));
await write("train.jsonl", 2_000_000, 4000, makeRow);
await write("held-out.jsonl", 3_000_000, 300, makeRow);
