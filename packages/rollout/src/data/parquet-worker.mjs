// Reads one Parquet file, in a thread of its own: what a damaged file does here (no end, no memory, a promise that rejects unheard)
// stays here. `readParquet` starts it. Gets the file's bytes; posts { rows } or { error }.
import { parentPort, workerData } from "node:worker_threads";
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";

// The reader's columns fail one by one, and it hears the first failure alone.
process.on("unhandledRejection", () => undefined);

const port = /** @type {import("node:worker_threads").MessagePort} */ (parentPort);
const { buffer, byteOffset, byteLength } = workerData;
const file = { byteLength, slice: (start, end = byteLength) => buffer.slice(byteOffset + start, byteOffset + end) };
try {
  port.postMessage({ rows: await parquetReadObjects({ file, compressors, utf8: false }) });
} catch (error) {
  port.postMessage({ error: error instanceof Error ? error.message : String(error) });
}
