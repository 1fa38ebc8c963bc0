import { open, stat } from "node:fs/promises";
import type { HeldOutPoint, MetricTable } from "@cria/viewer/api";
import { isObject } from "./read-small-json.js";

/** A line of metrics.jsonl; values that JSON cannot hold are null. */
export type MetricRow = ReadonlyMap<string, number | null>;

const CHUNK = 1 << 20;
/** Bytes of the longest line that is read; a line of a run has some ten thousand. */
const LONGEST = 4 << 20;

/** A growing metrics.jsonl: each refresh reads the added lines, or the whole file after lines were removed. */
export class MetricsFile {
  rows: MetricRow[] = [];
  /** Unreadable lines, without a last line that is still being written. */
  damaged = 0;
  modified: number | null = null;
  private at = 0;
  private rest = Buffer.alloc(0);
  private isSkipping = false;
  private inode = 0;

  constructor(private readonly path: string) {}

  /** @returns true if there is anything new. */
  async refresh(): Promise<boolean> {
    const found = await stat(this.path).catch(() => null);
    if (!found?.isFile()) {
      const had = this.rows.length > 0;
      this.clear();
      this.modified = null;
      return had;
    }
    // A run that resumes from an earlier step rewrites the file.
    const isOther = found.ino !== this.inode || found.size < this.at;
    if (!isOther && found.size === this.at) return false;
    if (isOther) this.clear();
    this.inode = found.ino;
    this.modified = found.mtimeMs;
    await this.readMore();
    return true;
  }

  private clear(): void {
    this.rows = [];
    this.damaged = 0;
    this.at = 0;
    this.rest = Buffer.alloc(0);
    this.isSkipping = false;
  }

  private async readMore(): Promise<void> {
    const file = await open(this.path, "r").catch(() => null);
    if (!file) return;
    try {
      const buffer = Buffer.alloc(CHUNK);
      for (;;) {
        const { bytesRead } = await file.read(buffer, 0, CHUNK, this.at);
        if (bytesRead === 0) return;
        this.at += bytesRead;
        this.take(buffer.subarray(0, bytesRead));
      }
    } catch {
      // The lines read so far count; the next refresh tries again.
    } finally {
      await file.close();
    }
  }

  private take(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      this.addLine(Buffer.concat([this.rest, chunk.subarray(start, end)]));
      this.rest = Buffer.alloc(0);
      start = end + 1;
    }
    if (this.isSkipping) return;
    this.rest = Buffer.concat([this.rest, chunk.subarray(start)]);
    if (this.rest.length <= LONGEST) return;
    this.isSkipping = true;
    this.rest = Buffer.alloc(0);
  }

  private addLine(line: Buffer): void {
    const row = this.isSkipping ? null : parseRow(line.toString("utf8"));
    this.isSkipping = false;
    if (row) this.rows.push(row);
    else if (line.length > 0) this.damaged++;
  }
}

function parseRow(text: string): MetricRow | null {
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value) || typeof value["training/global_step"] !== "number") return null;
    const entries = Object.entries(value).map(([name, given]): [string, number | null] => [
      name,
      typeof given === "number" && Number.isFinite(given) ? given : null,
    ]);
    return new Map(entries);
  } catch {
    return null;
  }
}

/** Duration of a line's step in seconds, with validation and checkpoint. */
function readSeconds(row: MetricRow): number {
  const names = ["perf/time_per_step", "timing_s/testing", "timing_s/save_checkpoint"];
  return names.reduce((sum, name) => sum + (row.get(name) ?? 0), 0);
}

/** Matches the names of held-out success of data sources, without `failed_ratio`. */
export const heldOutName = /^val-core\/.*\/(acc|reward)\/mean@\d+$/;

/** Held-out success of a line: the mean over its data sources; null without any. */
export function readHeldOut(row: MetricRow): number | null {
  const values = [...row].flatMap(([name, value]) => (heldOutName.test(name) && value !== null ? value : []));
  return values.length > 0 ? values.reduce((a, b) => a + b) / values.length : null;
}

/** All metrics, a column each, and the values by which steps can be compared. */
export function makeMetricTable(rows: readonly MetricRow[], heldOut: readonly HeldOutPoint[]): MetricTable {
  const names = new Set(rows.flatMap((row) => [...row.keys()]));
  let seconds = 0;
  let tokens = 0;
  const sums = rows.map((row) => {
    seconds += readSeconds(row);
    tokens += row.get("perf/total_num_tokens") ?? 0;
    return { seconds, tokens };
  });
  return {
    steps: rows.map((row) => row.get("training/global_step") ?? 0),
    seconds: sums.map((sum) => sum.seconds),
    tokens: sums.map((sum) => sum.tokens),
    heldOut: [...heldOut],
    columns: Object.fromEntries([...names].map((name) => [name, rows.map((row) => row.get(name) ?? null)])),
  };
}
