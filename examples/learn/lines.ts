import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** Writes a file of JSON lines, and the folder that it is in. */
export async function writeLines(file: string, values: readonly object[]): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, values.map((value) => `${JSON.stringify(value)}\n`).join(""));
}
