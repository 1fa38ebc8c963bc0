// Writes build/: a few demonstrations, rows to train on, and rows of titles and phrasings that are held out.   npm run
// make-data
import { join } from "node:path";
import { writeLines } from "../learn/lines.js";
import { makeDemonstration, makeRequest, makeRow, type Request, type Split } from "./requests.js";

const write = (name: string, split: Split, first: number, count: number, make: (request: Request) => object) =>
  writeLines(
    join(import.meta.dirname, "build", name),
    Array.from({ length: count }, (_, i) => make(makeRequest(first + i, split))),
  );

await write("demonstrations.jsonl", "train", 0, 80, (request) => ({ messages: makeDemonstration(request) }));
await write("train.jsonl", "train", 1_000_000, 1000, makeRow);
await write("held-out.jsonl", "held-out", 2_000_000, 150, makeRow);
