// Writes build/: demonstrations, rows to train on, and held-out rows with tools that training knows and with others.
//   npm run make-data
import { join } from "node:path";
import { writeLines } from "../learn/lines.js";
import { makeDemonstration, makeQuestion, makeRow, type Need, type Question, type Split } from "./generator.js";

const build = join(import.meta.dirname, "build");
const demonstrations = 480;

/** The needs of ten questions: four need one tool, three two, and three none. */
const needs: readonly Need[] = ["one", "two", "none", "one", "two", "none", "one", "two", "none", "one"];
const even: readonly Need[] = ["one", "two", "none"];

const write = (name: string, first: number, count: number, make: (seed: number, i: number) => object) =>
  writeLines(
    join(build, name),
    Array.from({ length: count }, (_, i) => make(first + i, i)),
  );
const ask = (split: Split, list: readonly Need[], make: (question: Question) => object) => (seed: number, i: number) =>
  make(makeQuestion(seed, split, list[i % list.length]!));

await write(
  "demonstrations.jsonl",
  0,
  demonstrations,
  ask("train", needs, (question) => ({ messages: makeDemonstration(question) })),
);
await write("train.jsonl", 1_000_000, 4000, ask("train", needs, makeRow));
await write("held-out-seen.jsonl", 2_000_000, 120, ask("seen", even, makeRow));
await write("held-out-unseen.jsonl", 3_000_000, 120, ask("unseen", even, makeRow));
