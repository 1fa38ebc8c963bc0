import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { BenchmarkOptions } from "../benchmark.js";
import { getModelFile } from "../models/index.js";
import type { Row } from "../row.js";

/** Peak resident memory beyond the weights in MiB, of a separate process: high-water marks never fall. */
async function measurePeak(rows: number, length: number): Promise<number> {
  const path = await getModelFile("qwen2.5-0.5b", "Q8_0");
  const child = join(import.meta.dirname, "memory-child.ts");
  const output = execFileSync(process.execPath, [...process.execArgv, child, path, String(rows), String(length)], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  return Number(output);
}

/** Memory of one step at 0.5B, and its growth with the length. */
export async function measureMemory({ includes, log }: BenchmarkOptions): Promise<Row[]> {
  const rows: Row[] = [];
  const title = "qwen2.5-0.5b Q8_0, LoRA r16, memory";
  const metric = "peak resident memory of the process less the weights, MiB";
  if (!includes(title)) return rows;
  const limit = 3 * 1024;
  const whole = await measurePeak(4, 1024);
  log(`${title}: 4 x 1024: ${whole.toFixed(0)} MiB`);
  rows.push({
    case: `${title}, 4 x 1024`,
    metric,
    ours: whole,
    peers: {},
    target: "below 3 GiB",
    met: whole < limit,
  });
  const peaks: number[] = [];
  for (const length of [256, 512, 1024]) {
    peaks.push(await measurePeak(1, length));
    log(`${title}: 1 x ${length}: ${peaks.at(-1)!.toFixed(0)} MiB`);
    rows.push({
      case: `${title}, 1 x ${length}`,
      metric,
      ours: peaks.at(-1)!,
      peers: {},
      target: null,
      met: null,
    });
  }
  const growth = (peaks[2]! - peaks[1]!) / Math.max(1, peaks[1]! - peaks[0]!);
  rows.push({
    case: title,
    metric: "memory added from 512 to 1024 tokens over that from 256 to 512",
    ours: growth,
    peers: {},
    target: "at most 2.2: linear growth gives 2, less once the budget for activations is full; quadratic 4",
    met: growth <= 2.2,
  });
  return rows;
}
