// Writes build/: conversations of a skill and of a bad habit, and rows to train and to hold out.   npm run make-data
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cropPicture, encodePng, loadToolConfig, type Picture } from "cria";
import { makeRandom } from "../learn/random.js";
import { drawDigit } from "../vision/pictures.js";

const build = join(import.meta.dirname, "build");
const question = "<image> which digit?";
/** Size of the picture, in pixels. */
const size = 104;
/**
 * Pixels between the middles of cells that are next to each other, and from a middle to the edges of the box to zoom
 * into.
 */
const pitch = 28;
const reach = 10;
/** Prompts list the tools, and conversations to learn from show the prompts of training. */
const tools = [...(await loadToolConfig(join(import.meta.dirname, "tools.yaml"))).values()].map(({ schema }) => schema);
/** The tool's text with the picture. */
const describe = (box: readonly number[]) => `The region ${JSON.stringify(box)} of the image.`;

/** A picture of nine cells, one of which has a small digit. */
function draw(seed: number) {
  const random = makeRandom(seed);
  const digit = Math.floor(random() * 10);
  const cell = Math.floor(random() * 9);
  return { digit, cell, picture: drawDigit(random, { size, digit, dot: 2, middle: middleOf(cell) }) };
}

function middleOf(cell: number) {
  const at = (column: number) => size / 2 + pitch * (column - 1);
  return [at(cell % 3), at(Math.floor(cell / 3))] as const;
}

/** [x1, y1, x2, y2] */
function boxOf(cell: number) {
  const [x, y] = middleOf(cell);
  return [x - reach, y - reach, x + reach, y + reach] as const;
}

const toImage = (picture: Picture) => ({ data: Buffer.from(encodePng(picture)).toString("base64") });

/**
 * A conversation that zooms where the digit is, with a probability; else into the middle, and where nothing is it
 * guesses.
 */
function makeConversation(seed: number, { zooms }: { zooms: number }) {
  const { digit, cell, picture } = draw(seed);
  const random = makeRandom(seed + 0x5eed);
  const looked = random() < zooms ? cell : 4;
  const said = looked === cell ? digit : Math.floor(random() * 10);
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
    tools,
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
await write("skill.jsonl", 0, 4000, (seed) => makeConversation(seed, { zooms: 1 }));
await write("habit.jsonl", 1_000_000, 2000, (seed) => makeConversation(seed, { zooms: 0.4 }));
await write("train.jsonl", 2_000_000, 4000, makeRow);
await write("held-out.jsonl", 3_000_000, 300, makeRow);
