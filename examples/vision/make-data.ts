// Writes build/: conversations of a skill and of a bad habit, and rows to train and to hold out.   npm run make-data
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encodePng } from "cria";
import { makeRandom } from "../learn/random.js";
import { drawDigit } from "./pictures.js";

const build = join(import.meta.dirname, "build");
const question = "<image> which digit?";

/** The picture of a number: the file in base64, and its digit. */
function draw(seed: number) {
  const random = makeRandom(seed);
  const digit = Math.floor(random() * 10);
  const picture = drawDigit(random, { size: 32, digit, dot: 3, middle: [16, 16] });
  return { digit, images: [{ data: Buffer.from(encodePng(picture)).toString("base64") }] };
}

/** A conversation that answers the shown digit with a probability, and otherwise 0. */
function makeConversation(seed: number, { reads }: { reads: number }) {
  const { digit, images } = draw(seed);
  const said = makeRandom(seed + 0x5eed)() < reads ? digit : 0;
  return {
    messages: [
      { role: "user", content: question },
      { role: "assistant", content: String(said) },
    ],
    images,
  };
}

function makeRow(seed: number) {
  const { digit, images } = draw(seed);
  return {
    data_source: "digits",
    prompt: [{ role: "user", content: question }],
    images,
    reward_model: { style: "rule", ground_truth: String(digit) },
  };
}

const write = async (name: string, first: number, count: number, make: (seed: number) => object) => {
  const lines = Array.from({ length: count }, (_, i) => `${JSON.stringify(make(first + i))}\n`);
  await writeFile(join(build, name), lines.join(""));
};
await mkdir(build, { recursive: true });
await write("skill.jsonl", 0, 4000, (seed) => makeConversation(seed, { reads: 1 }));
await write("habit.jsonl", 1_000_000, 2000, (seed) => makeConversation(seed, { reads: 0.25 }));
await write("train.jsonl", 2_000_000, 4000, makeRow);
await write("held-out.jsonl", 3_000_000, 200, makeRow);
