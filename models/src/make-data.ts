// Writes the calculator environment's rows: examples/calculator/data/{train,val}.jsonl. The same bytes every time.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeCalculatorRows } from "./calculator-rows.js";

const folder = process.argv[2] ?? join(import.meta.dirname, "..", "..", "examples", "calculator", "data");
await mkdir(folder, { recursive: true });
for (const [name, rows] of Object.entries(makeCalculatorRows())) {
  await writeFile(join(folder, `${name}.jsonl`), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  console.log(`${name}.jsonl: ${rows.length} rows`);
}
