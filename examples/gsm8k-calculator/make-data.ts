// Writes build/: demonstrations and rows from GSM8K's training problems, and the first 500 of its test.
//   npm run make-data [-- /path/to/gsm8k]     (default: build/source, where `cria data gsm8k --out` may write)
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { writeLines } from "../learn/lines.js";
import { chooseProblems, makeDemonstration, makeRow } from "./conversations.js";
import { readProblems } from "./problems.js";

const build = join(import.meta.dirname, "build");
const source = resolve(process.argv[2] ?? join(build, "source"));
if (!existsSync(source)) {
  console.error(`there is no ${source}: npx cria data gsm8k --out ${join(build, "source")}`);
  process.exit(1);
}
const [train, test] = [await readProblems(source, "train"), await readProblems(source, "test")];
const { demonstrations, rows } = chooseProblems(train, { demonstrations: 2000, rows: 1000 });

const write = (name: string, values: readonly object[]) => writeLines(join(build, name), values);
await write(
  "demonstrations.jsonl",
  demonstrations.map((problem) => ({ messages: makeDemonstration(problem) })),
);
await write(
  "train.jsonl",
  rows.map((problem) => makeRow(problem, "train")),
);
await write(
  "held-out.jsonl",
  test.slice(0, 500).map((problem) => makeRow(problem, "test")),
);
