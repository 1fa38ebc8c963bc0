import { DumpIndex } from "./dump-index.js";

/** Most rows of all kept indexes: some 500 bytes each. */
const MOST_ROWS = 400_000;

/** The indexes of recently used dumps; the least recently used are forgotten, and read again when needed. */
export class IndexStore {
  private readonly indexes = new Map<string, DumpIndex>();

  constructor(private readonly mostRows = MOST_ROWS) {}

  /** The index of a dump, which may be outdated. */
  get(file: string): DumpIndex {
    const index = this.indexes.get(file) ?? new DumpIndex(file);
    // Moves it to the end.
    this.indexes.delete(file);
    this.indexes.set(file, index);
    this.forget(file);
    return index;
  }

  private forget(kept: string): void {
    let rows = 0;
    for (const index of this.indexes.values()) rows += index.rows.length;
    for (const [file, index] of this.indexes) {
      if (rows <= this.mostRows) return;
      if (file === kept || index.isBusy) continue;
      rows -= index.rows.length;
      this.indexes.delete(file);
    }
  }
}
