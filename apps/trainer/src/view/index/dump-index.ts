import { open, stat } from "node:fs/promises";
import type { ToolSchema } from "@cria/core";
import type { DumpLine } from "@cria/records";
import { parseDumpLine } from "@cria/records/internal";
import { hashDump, type IndexState, readIndex, writeIndex } from "./index-file.js";
import { type IndexRow, makeRow } from "./index-row.js";
import { type ScannedLine, scanLines } from "./scan-lines.js";

/** Lines that are read for the schemas of a conversation's tools. */
const MOST_SCHEMAS = 50;

/**
 * The conversations of a dump, with the positions of their lines: built once, stored next to the dump, and updated as
 * it grows.
 */
export class DumpIndex {
  private state: IndexState = makeEmpty();
  private work: Promise<void> | null = null;
  /** Uids that have a title. */
  private titled = new Set<string>();
  private isLoaded = false;
  /** Counts changes, for caches of the rows. */
  version = 0;
  /** Bytes of the dump at the last update. */
  size = 0;

  constructor(readonly file: string) {}

  get rows(): readonly IndexRow[] {
    return this.state.rows;
  }

  get indexed(): number {
    return this.state.indexed;
  }

  /** True while it is being built or brought up to date. */
  get isBusy(): boolean {
    return this.work !== null || !this.isLoaded;
  }

  /**
   * Updates the index after a change of the dump; concurrent calls share the work.
   * @throws errors of the file system: the dump may have been removed.
   */
  update(): Promise<void> {
    this.work ??= this.takeIn().finally(() => {
      this.work = null;
    });
    return this.work;
  }

  /** The row of a line; undefined without one. */
  find(line: number): IndexRow | undefined {
    const i = this.place(line);
    return this.rows[i]?.line === line ? this.rows[i] : undefined;
  }

  /** Lines before and after a line, null at the ends. */
  neighbours(line: number): { previous: number | null; next: number | null } {
    const i = this.place(line);
    return { previous: this.rows[i - 1]?.line ?? null, next: this.rows[i + 1]?.line ?? null };
  }

  /**
   * Reads conversations.
   * @throws DataError for a line that has been damaged since; errors of the file system.
   */
  async read(rows: readonly IndexRow[]): Promise<DumpLine[]> {
    const file = await open(this.file, "r");
    try {
      const lines: DumpLine[] = [];
      for (const { at, length, line } of rows) {
        const buffer = Buffer.alloc(length);
        await file.read(buffer, 0, length, at);
        lines.push(parseLine(buffer.toString("utf8"), `${this.file}, line ${line + 1}`));
      }
      return lines;
    } finally {
      await file.close();
    }
  }

  /** Schemas of tools, from the file's first line that describes them. */
  async readSchemas(names: readonly string[]): Promise<ToolSchema[]> {
    const describing = this.rows.filter(({ hasSchemas }) => hasSchemas).slice(0, MOST_SCHEMAS);
    const schemas = new Map<string, ToolSchema>();
    for (const { tool_schemas } of await this.read(describing))
      for (const schema of tool_schemas)
        if (typeof schema?.function?.name === "string") schemas.set(schema.function.name, schema);
    return names.flatMap((name) => schemas.get(name) ?? []);
  }

  /** Index of the first row at or after a line. */
  private place(line: number): number {
    let [low, high] = [0, this.rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle]!.line < line) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private async takeIn(): Promise<void> {
    const { size, mtimeMs: modified } = await stat(this.file);
    this.size = size;
    if (!this.isLoaded) {
      const saved = await readIndex(this.file);
      if (saved) this.replace(saved);
      this.isLoaded = true;
    }
    const { indexed, hash } = this.state;
    if (indexed === size && this.state.modified === modified) return;
    const grows =
      indexed > 0 && size > indexed && (await hashDump(this.file, indexed)) === hash && (await this.endsLine(indexed));
    if (!grows) this.replace(makeEmpty());
    await this.scan(modified);
  }

  /** True if a line feed ends the last indexed line, which may otherwise have grown. */
  private async endsLine(at: number): Promise<boolean> {
    const file = await open(this.file, "r");
    try {
      const { buffer } = await file.read(Buffer.alloc(1), 0, 1, at - 1);
      return buffer[0] === 10;
    } finally {
      await file.close();
    }
  }

  private replace(state: IndexState): void {
    this.state = state;
    this.titled = new Set(state.rows.map(({ uid }) => uid));
    this.version++;
  }

  private async scan(modified: number): Promise<void> {
    const { state } = this;
    let sinceHash = 0;
    for await (const scanned of scanLines(this.file, state.indexed)) {
      // A last line is unfinished unless it is valid without its line feed.
      const row = this.makeRow(scanned);
      if (!scanned.isWhole && !row) break;
      if (row) state.rows.push(row);
      state.lines++;
      const end = scanned.at + scanned.length + (scanned.isWhole ? 1 : 0);
      sinceHash += end - state.indexed;
      state.indexed = end;
      if (sinceHash < 1 << 20) continue;
      sinceHash = 0;
      this.version++;
    }
    state.modified = modified;
    state.hash = await hashDump(this.file, state.indexed);
    this.version++;
    await writeIndex(this.file, state);
  }

  private makeRow({ bytes, at, length }: ScannedLine): IndexRow | null {
    if (bytes === null || length === 0) return null;
    try {
      const row = makeRow(parseLine(bytes.toString("utf8"), this.file), { line: this.state.lines, at, length });
      if (this.titled.has(row.uid)) return { ...row, title: "" };
      this.titled.add(row.uid);
      return row;
    } catch {
      return null;
    }
  }
}

function parseLine(text: string, place: string): DumpLine {
  return parseDumpLine(JSON.parse(text), place);
}

function makeEmpty(): IndexState {
  return { rows: [], indexed: 0, lines: 0, modified: -1, hash: "" };
}
