// Writes the rows of the examples that the embedded policy trains on:
// examples/{calculator,code-game}/data/{train,val}.jsonl. The same bytes every time.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeCalculatorRows } from "./calculator-rows.js";
import { makeCodeGameRows } from "./code-game-rows.js";

const examples = process.argv[2] ?? join(import.meta.dirname, "..", "..", "examples");
for (const [example, sets] of Object.entries({ calculator: makeCalculatorRows(), "code-game": makeCodeGameRows() })) {
  const folder = join(examples, example, "data");
  await mkdir(folder, { recursive: true });
  for (const [name, rows] of Object.entries(sets)) {
    await writeFile(join(folder, `${name}.jsonl`), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    console.log(`${example}/data/${name}.jsonl: ${rows.length} rows`);
  }
}
